// `npm run torture -- [--minutes N] [--seed S]`: random calls to a real server with real VMs while everything around it fails. What is called, and what fails, follows from the seed.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { packageRoot } from '../../core/package-root.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { fetchKernel } from '../helpers/isolated.ts'

const INSIDE = fileURLToPath(new URL('inside.js', import.meta.url))
const SEEDS = 2 ** 20

/**
 * Runs it in namespaces of its own for processes, mounts and network. They end with their first process, and everything in them with them: nothing is left, however this ends.
 * That first process is a shell, since it has to take leave of the processes that lost their parent.
 */
async function torture (seed: number, seconds: number): Promise<number> {
  await fetchKernel()
  const folder = await mkdtemp(join(tmpdir(), 'berth-torture-'))
  const script = 'mount -t tmpfs -o mode=755 tmpfs /run && mkdir /run/tmp && "$@"; exit $?'
  const command = [process.execPath, '--enable-source-maps', INSIDE, folder, String(seed), String(seconds), join(packageRoot, '.cache/torture', `seed-${seed}`)]
  const namespaces = ['unshare', '--net', '--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc']
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...namespaces, 'sh', '-c', script, 'sh', ...command], {
    stdio: ['ignore', 'inherit', 'inherit'], detached: true, env: { ...process.env, TMPDIR: '/run/tmp' }
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill('SIGKILL'))
  try {
    return await new Promise<number>((resolve, reject) => {
      child.once('error', reject)
      child.once('exit', (code) => resolve(code ?? 1))
    })
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const { values } = parseArgs({ options: { minutes: { type: 'string', default: '5' }, seed: { type: 'string' } } })
// Without a seed of its own a run is one that no other was.
const seed = values.seed === undefined ? Date.now() % SEEDS : Number(values.seed)
const missing = missingPrivileges()
if (missing === undefined) {
  console.log(`seed ${seed}`)
  process.exitCode = await torture(seed, Number(values.minutes) * 60)
} else {
  console.log(missing)
  process.exitCode = 2
}
