// The two tiers of the suite, by the names of the files, so that nobody edits a list: `*.long.test.ts` is the long tier, every other `*.test.ts` the fast one.

export const tiers = ['fast', 'long'] as const
export type Tier = typeof tiers[number]

/** @param source path of a test's source file */
export function tierOf (source: string): Tier {
  return source.endsWith('.long.test.ts') ? 'long' : 'fast'
}
