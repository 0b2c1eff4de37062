import { FastifyAdapter } from '@nestjs/platform-fastify';
import { describeFencedHttp } from './fenced-http-suite.js';

describeFencedHttp('Fastify', () => new FastifyAdapter());
