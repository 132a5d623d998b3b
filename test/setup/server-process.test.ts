// The server as a process of tests, benchmarks and the quickstart: it does not outlive them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { readIdentity } from '../../core/process/identity.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'

t.test('a server ends when the program that started it is killed', async (t) => {
  const program = fileURLToPath(new URL('programs/start-and-die.js', import.meta.url))
  const child = spawn(process.execPath, [program, testFolder(t)], { stdio: ['ignore', 'pipe', 'inherit'] })
  let printed = ''
  child.stdout.on('data', (chunk: Buffer) => { printed += chunk.toString() })
  const [, signal] = await once(child, 'close')
  t.equal(signal, 'SIGKILL')
  const pid = Number(printed)
  t.ok(pid > 1, `it has started one: ${printed}`)
  t.ok(await eventually('the server has ended', () => readIdentity(pid) === undefined))
})
