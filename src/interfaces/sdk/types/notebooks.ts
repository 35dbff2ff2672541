// Made from the contracts by scripts/sdk-types.ts.

/** Any JSON value. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };
