// Each fuzz target runs the seeds that failed once and a few others; `npm run fuzz -- NAME --minutes N` goes on from there.
import t from 'tap'
import { readdirSync } from 'node:fs'
import { Random, type Fuzz } from './fuzz.ts'

const FEW = 40

const names = readdirSync(new URL('.', import.meta.url)).filter(name => name.endsWith('.js') && !name.endsWith('.test.js') && name !== 'fuzz.js').map(name => name.slice(0, -3))

t.test('numbers follow from their seed', async t => {
  const [first, second] = [new Random(7), new Random(7)]
  for (let count = 0; count < 100; count++) t.equal(first.below(1_000), second.below(1_000))
  t.not(new Random(8).below(1_000_000), new Random(7).below(1_000_000))
})

for (const name of names) {
  t.test(`fuzzing finds nothing where it found something once, nor with the first ${FEW} seeds: ${name}`, async t => {
    const { fuzz }: { fuzz: Fuzz } = await import(new URL(`${name}.js`, import.meta.url).href)
    const run = await fuzz.start(work => t.teardown(work))
    for (const seed of [...fuzz.seeds, ...Array.from({ length: FEW }, (_, index) => index)]) {
      const { input, fault } = await run(new Random(seed))
      if (fault !== undefined) t.fail(`seed ${seed}: ${fault}\n${input}`)
    }
    t.pass('all cases ran')
  })
}
