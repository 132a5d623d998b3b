// Where the options that all commands have may be written.
import t from 'tap'
import type { Input } from '../../cli/input.ts'
import { createProgram } from '../../cli/program.ts'

async function inputOf (...args: readonly string[]): Promise<Input> {
  const inputs: Input[] = []
  await createProgram(async (_spec, input) => { await Promise.resolve(inputs.push(input)) }).parseAsync([...args], { from: 'user' })
  const [input] = inputs
  if (input === undefined) throw new Error('no command was called')
  return input
}

t.test('an option that all commands have means the same before the command and after it, and the later one counts', async (t) => {
  for (const args of [['--no-color', 'doctor'], ['doctor', '--no-color']]) t.equal((await inputOf(...args)).choice('color'), false, args.join(' '))
  t.not((await inputOf('doctor')).choice('color'), false)
  for (const args of [['--url', 'a', 'image', 'ls'], ['image', 'ls', '--url', 'a'], ['--url', 'b', 'image', 'ls', '--url', 'a']]) t.equal((await inputOf(...args)).text('url'), 'a', args.join(' '))
  t.equal((await inputOf('-q', 'image', 'ls', '--json')).flag('quiet'), true)
})
