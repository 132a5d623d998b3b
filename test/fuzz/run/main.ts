// `npm run fuzz -- NAME [--minutes N] [--seed S]`: runs a target of test/fuzz with one seed after another, until the time is over or one fails.
// A failing seed is printed with its case; the same seed makes the same case again, and belongs into the target's `seeds`.
import { parseArgs } from 'node:util'
import { Random, type Fuzz, type FuzzResult } from '../fuzz.ts'
import { findTargets } from '../helpers/targets.ts'

const SAY_EVERY_MS = 10_000

async function attack (fuzz: Fuzz, firstSeed: number | undefined, minutes: number, atEnd: (work: () => unknown) => void): Promise<number> {
  const run = await fuzz.start(atEnd)
  const untilMs = performance.now() + minutes * 60_000
  let saidMs = performance.now()
  // Without a seed of its own a run begins where no other did.
  let seed = firstSeed ?? Date.now() % 2 ** 31
  let cases = 0
  console.log(`first seed ${seed}`)
  for (; cases === 0 || performance.now() < untilMs; seed++, cases++) {
    const { input, fault } = await run(new Random(seed)).catch((error: unknown): FuzzResult => ({ input: 'the case was not run to its end', fault: error instanceof Error ? error.stack ?? error.message : String(error) }))
    if (fault !== undefined) {
      console.log(`seed ${seed} fails after ${cases} others:\n${fault}\n${input}`)
      return 1
    }
    if (performance.now() - saidMs > SAY_EVERY_MS) {
      saidMs = performance.now()
      console.log(`${cases} cases`)
    }
  }
  console.log(`${cases} cases, nothing found`)
  return 0
}

async function main (): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { minutes: { type: 'string', default: '1' }, seed: { type: 'string' } } })
  const [name = ''] = positionals
  const targets = await findTargets()
  const file = targets.get(name)
  if (file === undefined) {
    console.log(`usage: npm run fuzz -- NAME [--minutes N] [--seed S]\nNAME is one of ${[...targets.keys()].join(', ')}`)
    return 2
  }
  const { fuzz }: { fuzz: Fuzz } = await import(file.href)
  const ends: (() => unknown)[] = []
  try {
    // One seed alone is one case.
    return await attack(fuzz, values.seed === undefined ? undefined : Number(values.seed), values.seed === undefined ? Number(values.minutes) : 0, work => ends.push(work))
  } finally {
    for (const end of ends.reverse()) await end()
  }
}

process.exit(await main())
