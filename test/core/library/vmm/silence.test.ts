// What the kernel says of a VMM that answers nobody.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import t from 'tap'
import { statFields } from '../../../../core/process/stat.ts'
import { stateOfSilence } from '../../../../core/library/vmm/silence.ts'
import { eventually } from '../../../helpers/eventually.ts'

const statOf = async (pid: number | string): Promise<string> => await readFile(`/proc/${pid}/stat`, 'utf8')

t.test('a process that the kernel takes apart is ending, and one that runs is not', async (t) => {
  t.match(stateOfSilence(await statOf('self'), 1000), { status: 'hung' })
  // The shell becomes a program that does not wait for its child, so that the child stays as the kernel leaves it.
  const child = spawn('sh', ['-c', 'sleep 0.1 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.teardown(() => child.kill('SIGKILL'))
  const [pid]: unknown[] = await once(createInterface(child.stdout), 'line')
  await eventually('it has ended', async () => statFields(await statOf(Number(pid)))[0] === 'Z')
  t.equal(stateOfSilence(await statOf(Number(pid)), 1000), undefined)
})

t.test('silence has its reason: a signal, the host\'s disk, or neither', async (t) => {
  t.match(['T', 'D', 'S'].map((letter) => stateOfSilence(`12 (qemu) ${letter} 1 2`, 1000)?.reason), [/stopped by a signal/, /waits for the host's disk/, /^the VMM has not answered for 1000 ms$/])
})
