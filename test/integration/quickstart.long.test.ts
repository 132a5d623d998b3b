// The first thing that a newcomer runs, as they run it.
import { execFile, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { runsFolder } from '../../setup/quickstart/runs-folder.ts'
import { processesIn } from '../../setup/server/leftovers.ts'

const execute = promisify(execFile)
const main = join(dirname(fileURLToPath(import.meta.url)), '../../setup/quickstart/main.js')
const runs = runsFolder()

interface Outcome { readonly code: number | null, readonly text: string }

async function quickstart (args: readonly string[], onText: (text: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined): Promise<Outcome> {
  const child = spawn(process.execPath, [main, ...args], { cwd: packageRoot, stdio: ['ignore', 'pipe', 'pipe'] })
  let text = ''
  const add = (chunk: Buffer): void => {
    text += chunk.toString()
    onText(text, signal => child.kill(signal))
  }
  child.stdout.on('data', add)
  child.stderr.on('data', add)
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  return { code, text }
}

async function runFolders (): Promise<string[]> {
  return existsSync(runs) ? await readdir(runs) : []
}

t.test('it boots a machine, prints what only that machine can know, and leaves nothing', { timeout: 900_000 }, async (t) => {
  const before = await runFolders()
  const { code, text } = await quickstart([])
  t.equal(code, 0, text)
  t.match(text, /\| kernel: \d+\.\d+/)
  t.match(text, /\| memory: \d+ kB/)
  t.match(text, /exit code 7/)
  t.strictSame((await runFolders()).filter(name => !before.includes(name)), [])
})

t.test('Ctrl-C in the middle cleans up', { timeout: 900_000 }, async (t) => {
  const before = await runFolders()
  let isInterrupted = false
  const { code, text } = await quickstart([], (seen, kill) => {
    if (isInterrupted || !seen.includes('booting it')) return
    isInterrupted = true
    kill('SIGINT')
  })
  t.equal(code, 130, text)
  t.strictSame((await runFolders()).filter(name => !before.includes(name)), [])
})

t.test('--keep leaves a server that its lines reach, by the command and by curl, until --stop', { timeout: 900_000 }, async (t) => {
  const { code, text } = await quickstart(['--keep'])
  t.equal(code, 0, text)
  const [, key, url] = /curl -H 'Authorization: Bearer (\S+)' (http:\S+)/.exec(text) ?? []
  const answer = await fetch(url ?? '', { headers: { authorization: `Bearer ${key ?? ''}` } })
  t.equal(answer.status, 200)
  t.match(await answer.json(), [{ status: 'ready' }])
  const file = /^ {2}\. (\S+)$/m.exec(text)?.[1] ?? 'none'
  t.match((await execute('bash', ['-c', `. ${file}; berth image ls`], { cwd: packageRoot })).stdout, /demo\/busybox:latest +ready/)
  t.equal((await stat(resolve(packageRoot, file))).mode & 0o777, 0o600, 'the key is in it')
  const run = /--stop (run-\w+)/.exec(text)?.[1] ?? 'none'
  const stopped = await quickstart(['--stop', run])
  t.equal(stopped.code, 0, stopped.text)
  t.notOk(existsSync(join(runs, run)), 'its folder is gone')
  t.strictSame(await processesIn(join(runs, run)), [])
})
