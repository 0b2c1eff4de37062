import { ExpressAdapter } from '@nestjs/platform-express';
import { describeFencedHttp } from './fenced-http-suite.js';

describeFencedHttp('Express', () => new ExpressAdapter());
