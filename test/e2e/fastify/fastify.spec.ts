import { FastifyAdapter } from '@nestjs/platform-fastify';
import { describeHttp } from '../decorators/http-suite.js';

describeHttp('Fastify', () => new FastifyAdapter());
