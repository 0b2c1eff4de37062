import { getPrismaClient, type ITXClientDenyList, type Types } from '@prisma/client/runtime/client';

/**
 * What "prisma generate" (7.10, generator prisma-client) writes for this schema, without the nine tenths of it that are
 * types. Kept here because the generator costs every fresh install 230 MB and a download of an engine that it does not
 * use; the client itself, which sends the statements, is Prisma’s own.
 */
const SCHEMA = `generator client {
  provider     = "prisma-client"
  output       = "generated"
  moduleFormat = "esm"
}
datasource db {
  provider = "postgresql"
}
model Ledger {
  month  String @id
  closed Boolean
  fence  BigInt @default(0)
  @@map("ledger")
}

model Entry {
  at    Int    @id @default(autoincrement())
  month String
  fence BigInt
  @@map("entries")
}
`;

const GRAPH = [
  'VRUgBiwAAEYAMC0AAAQAEC4AAEYAMDABAAAAATEEAEEAIT0gAEcAIQEAAAABACABAAAAAQAgBiwAAEYAMC0AAAQAEC4AAEYAMDAB',
  'AEAAITEEAEEAIT0gAEcAIQADAAAABAAgAwAABQAwBAAAAQAgAwAAAAQAIAMAAAUAMAQAAAEAIAMAAAAEACADAAAFADAEAAABACAD',
  'MAEAAAABMQQAAAABPSAAAAABAQgAAAkAIAMwAQAAAAExBAAAAAE9IAAAAAEBCAAACwAwAQgAAAsAMAMwAQBNACExBABOACE9IABV',
  'ACECAAAAAQAgCAAADgAgAzABAE0AITEEAE4AIT0gAFUAIQIAAAAEACAIAAAQACACAAAABAAgCAAAEAAgAwAAAAEAIA8AAAkAIBAA',
  'AA4AIAEAAAABACABAAAABAAgBRUAAFAAIBYAAFEAIBcAAFQAIBgAAFMAIBkAAFIAIAYsAABCADAtAAAXABAuAABCADAwAQA1ACEx',
  'BAA2ACE9IABDACEDAAAABAAgAwAAFgAwFAAAFwAgAwAAAAQAIAMAAAUAMAQAAAEAIAYsAAA-ADAtAAAdABAuAAA-ADAvAgAAAAEw',
  'AQBAACExBABBACEBAAAAGgAgAQAAABoAIAYsAAA-ADAtAAAdABAuAAA-ADAvAgA_ACEwAQBAACExBABBACEAAwAAAB0AIAMAAB4A',
  'MAQAABoAIAMAAAAdACADAAAeADAEAAAaACADAAAAHQAgAwAAHgAwBAAAGgAgAy8CAAAAATABAAAAATEEAAAAAQEIAAAiACADLwIA',
  'AAABMAEAAAABMQQAAAABAQgAACQAMAEIAAAkADADLwIATwAhMAEATQAhMQQATgAhAgAAABoAIAgAACcAIAMvAgBPACEwAQBNACEx',
  'BABOACECAAAAHQAgCAAAKQAgAgAAAB0AIAgAACkAIAMAAAAaACAPAAAiACAQAAAnACABAAAAGgAgAQAAAB0AIAUVAABIACAWAABJ',
  'ACAXAABMACAYAABLACAZAABKACAGLAAAMwAwLQAAMAAQLgAAMwAwLwIANAAhMAEANQAhMQQANgAhAwAAAB0AIAMAAC8AMBQAADAA',
  'IAMAAAAdACADAAAeADAEAAAaACAGLAAAMwAwLQAAMAAQLgAAMwAwLwIANAAhMAEANQAhMQQANgAhDRUAADgAIBYAADkAIBcAADgA',
  'IBgAADgAIBkAADgAIDICAAAAATMCAAAABDQCAAAABDUCAAAAATYCAAAAATcCAAAAATgCAAAAATkCAD0AIQ4VAAA4ACAYAAA8ACAZ',
  'AAA8ACAyAQAAAAEzAQAAAAQ0AQAAAAQ1AQAAAAE2AQAAAAE3AQAAAAE4AQAAAAE5AQA7ACE6AQAAAAE7AQAAAAE8AQAAAAENFQAA',
  'OAAgFgAAOQAgFwAAOgAgGAAAOgAgGQAAOgAgMgQAAAABMwQAAAAENAQAAAAENQQAAAABNgQAAAABNwQAAAABOAQAAAABOQQANwAh',
  'DRUAADgAIBYAADkAIBcAADoAIBgAADoAIBkAADoAIDIEAAAAATMEAAAABDQEAAAABDUEAAAAATYEAAAAATcEAAAAATgEAAAAATkE',
  'ADcAIQgyAgAAAAEzAgAAAAQ0AgAAAAQ1AgAAAAE2AgAAAAE3AgAAAAE4AgAAAAE5AgA4ACEIMggAAAABMwgAAAAENAgAAAAENQgA',
  'AAABNggAAAABNwgAAAABOAgAAAABOQgAOQAhCDIEAAAAATMEAAAABDQEAAAABDUEAAAAATYEAAAAATcEAAAAATgEAAAAATkEADoA',
  'IQ4VAAA4ACAYAAA8ACAZAAA8ACAyAQAAAAEzAQAAAAQ0AQAAAAQ1AQAAAAE2AQAAAAE3AQAAAAE4AQAAAAE5AQA7ACE6AQAAAAE7',
  'AQAAAAE8AQAAAAELMgEAAAABMwEAAAAENAEAAAAENQEAAAABNgEAAAABNwEAAAABOAEAAAABOQEAPAAhOgEAAAABOwEAAAABPAEA',
  'AAABDRUAADgAIBYAADkAIBcAADgAIBgAADgAIBkAADgAIDICAAAAATMCAAAABDQCAAAABDUCAAAAATYCAAAAATcCAAAAATgCAAAA',
  'ATkCAD0AIQYsAAA-ADAtAAAdABAuAAA-ADAvAgA_ACEwAQBAACExBABBACEIMgIAAAABMwIAAAAENAIAAAAENQIAAAABNgIAAAAB',
  'NwIAAAABOAIAAAABOQIAOAAhCzIBAAAAATMBAAAABDQBAAAABDUBAAAAATYBAAAAATcBAAAAATgBAAAAATkBADwAIToBAAAAATsB',
  'AAAAATwBAAAAAQgyBAAAAAEzBAAAAAQ0BAAAAAQ1BAAAAAE2BAAAAAE3BAAAAAE4BAAAAAE5BAA6ACEGLAAAQgAwLQAAFwAQLgAA',
  'QgAwMAEANQAhMQQANgAhPSAAQwAhBRUAADgAIBgAAEUAIBkAAEUAIDIgAAAAATkgAEQAIQUVAAA4ACAYAABFACAZAABFACAyIAAA',
  'AAE5IABEACECMiAAAAABOSAARQAhBiwAAEYAMC0AAAQAEC4AAEYAMDABAEAAITEEAEEAIT0gAEcAIQIyIAAAAAE5IABFACEAAAAA',
  'AAE-AQAAAAEFPgQAAAABPwQAAAABQAQAAAABQQQAAAABQgQAAAABBT4CAAAAAT8CAAAAAUACAAAAAUECAAAAAUICAAAAAQAAAAAA',
  'AT4gAAAAAQAAAAAFFQAGFgAHFwAIGAAJGQAKAAAAAAAFFQAGFgAHFwAIGAAJGQAKAAAABRUAEBYAERcAEhgAExkAFAAAAAAABRUA',
  'EBYAERcAEhgAExkAFAECAQIDAQUGAQYHAQcIAQkKAQoMAgsNAwwPAQ0RAg4SBBETARIUARMVAhoYBRsZCxwbDB0cDB4fDB8gDCAh',
  'DCEjDCIlAiMmDSQoDCUqAiYrDicsDCgtDCkuAioxDysyFQ',
].join('');

/** Of the globals of Node; TypeScript has it in the library for browsers only. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { Module: new (wasm: Uint8Array) => unknown };
};

const COMPILER = '@prisma/client/runtime/query_compiler_fast_bg.postgresql';

type Delegate<Row> = {
  create(args: { data: Partial<Row> }): Types.Public.PrismaPromise<Row>;
  updateMany(args: {
    where: Record<string, unknown>;
    data: Partial<Row>;
  }): Types.Public.PrismaPromise<{ count: number }>;
};

/** Of the types that are generated, those that are used here: as they are there. */
export interface PrismaClient {
  readonly ledger: Delegate<{ month: string; closed: boolean; fence: bigint | number }>;
  readonly entry: Delegate<{ at: number; month: string; fence: bigint | number }>;
  $queryRawUnsafe<T = unknown>(query: string, ...values: any[]): Types.Public.PrismaPromise<T>;
  $transaction<R>(
    work: (tx: Prisma.TransactionClient) => Types.Utils.JsPromise<R>,
    options?: { maxWait?: number; timeout?: number; isolationLevel?: string },
  ): Types.Utils.JsPromise<R>;
  $disconnect(): Types.Utils.JsPromise<void>;
}

export declare namespace Prisma {
  type TransactionClient = Omit<PrismaClient, ITXClientDenyList>;
}

export const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: '7.10.1',
  engineVersion: 'd1b3f377ca835d73fd50954a5e22128b9ebdd6b8',
  activeProvider: 'postgresql',
  inlineSchema: SCHEMA,
  runtimeDataModel: JSON.parse(`{
    "models": {
      "Ledger": { "dbName": "ledger", "schema": null, "fields": [
        { "name": "month", "kind": "scalar", "type": "String" },
        { "name": "closed", "kind": "scalar", "type": "Boolean" },
        { "name": "fence", "kind": "scalar", "type": "BigInt" }
      ] },
      "Entry": { "dbName": "entries", "schema": null, "fields": [
        { "name": "at", "kind": "scalar", "type": "Int" },
        { "name": "month", "kind": "scalar", "type": "String" },
        { "name": "fence", "kind": "scalar", "type": "BigInt" }
      ] }
    },
    "enums": {},
    "types": {}
  }`),
  parameterizationSchema: {
    strings:
      'where Ledger.findUnique Ledger.findUniqueOrThrow orderBy cursor Ledger.findFirst Ledger.findFirstOrThrow Ledger.findMany data Ledger.createOne Ledger.createMany Ledger.createManyAndReturn Ledger.updateOne Ledger.updateMany Ledger.updateManyAndReturn create update Ledger.upsertOne Ledger.deleteOne Ledger.deleteMany having _count _avg _sum _min _max Ledger.groupBy Ledger.aggregate Entry.findUnique Entry.findUniqueOrThrow Entry.findFirst Entry.findFirstOrThrow Entry.findMany Entry.createOne Entry.createMany Entry.createManyAndReturn Entry.updateOne Entry.updateMany Entry.updateManyAndReturn Entry.upsertOne Entry.deleteOne Entry.deleteMany Entry.groupBy Entry.aggregate AND OR NOT at month fence equals in notIn lt lte gt gte not contains startsWith endsWith closed set increment decrement multiply divide'.split(
        ' ',
      ),
    graph: GRAPH,
  },
  compilerWasm: {
    getRuntime: () => import(`${COMPILER}.mjs`),
    getQueryCompilerWasmModule: async () => {
      const { wasm } = (await import(`${COMPILER}.wasm-base64.mjs`)) as { wasm: string };
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'));
    },
    importName: './query_compiler_fast_bg.js',
  },
}) as unknown as new (options: {
  adapter: unknown;
  transactionOptions: { maxWait: number; timeout: number };
}) => PrismaClient;
