import { Controller, Get, Param } from '@nestjs/common';
import type { PriceList } from './price-cache.js';
import { Prices } from './prices.js';

@Controller('prices')
export class PricesController {
  constructor(private readonly prices: Prices) {}

  @Get(':id')
  list(@Param('id') id: string): Promise<PriceList> {
    return this.prices.list(id);
  }
}
