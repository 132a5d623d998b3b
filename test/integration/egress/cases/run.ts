// Runs a list of cases one after the other, or only those whose name has one of the words that the program was started with.
import t, { type Test } from 'tap'

export async function runCases (cases: Readonly<Record<string, (t: Test) => Promise<unknown>>>): Promise<void> {
  const only = process.argv.slice(2)
  for (const [name, run] of Object.entries(cases)) {
    if (only.length > 0 && !only.some((part) => name.includes(part))) continue
    await t.test(name, { timeout: 1_400_000 }, async (t) => {
      const began = Date.now()
      await run(t)
      t.comment(`${Date.now() - began} ms`)
    })
  }
}
