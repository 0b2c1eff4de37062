import { Redis } from 'ioredis5';
import Redlock from 'redlock';
import { redlockLike } from './redlock-like.mjs';

export const open = ({ port, ttl, poll }) =>
  redlockLike(new Redlock([new Redis(port, '127.0.0.1')]), { ttl, poll });
