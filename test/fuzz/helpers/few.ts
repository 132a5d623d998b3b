// A few cases of each fuzz target, as tests: the seeds that failed once, and the first ones.
import type { Test } from 'tap'
import { Random, type Fuzz } from '../fuzz.ts'
import { findTargets } from './targets.ts'

/** Of those targets that are slow, or of the others. */
export async function runFew (t: Test, { areSlow, few }: { readonly areSlow: boolean, readonly few: number }): Promise<void> {
  for (const [name, file] of await findTargets()) {
    const { fuzz }: { fuzz: Fuzz } = await import(file.href)
    if ((fuzz.isSlow ?? false) !== areSlow) continue
    await t.test(`fuzzing finds nothing where it found something once, nor with the first ${few} seeds: ${name}`, async (t) => {
      const run = await fuzz.start(work => t.teardown(work))
      for (const seed of [...fuzz.seeds, ...Array.from({ length: few }, (_, index) => index)]) {
        const { input, fault } = await run(new Random(seed))
        if (fault !== undefined) t.fail(`seed ${seed}: ${fault}\n${input}`)
      }
      t.pass('all cases ran')
    })
  }
}
