import { ExpressAdapter } from '@nestjs/platform-express';
import { describeHttp } from '../decorators/http-suite.js';

describeHttp('Express', () => new ExpressAdapter());
