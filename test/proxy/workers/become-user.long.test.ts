// The proxy gives up root by itself, so that it can lie where only root can pass through.
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'

const run = promisify(execFile)
const BUILT = fileURLToPath(new URL('../../../proxy/', import.meta.url))
const USER = '1899999997'
const skip = process.getuid?.() === 0 ? false : 'only root can become another user'

/** A copy of the program in a folder of root's alone, and a folder beside it that everybody may use, with a configuration. */
async function place (t: Test): Promise<{ program: string, home: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-become-user-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  await chmod(folder, 0o755)
  const [closed, home] = [join(folder, 'closed'), join(folder, 'home')]
  const checkout = join(closed, 'berth')
  await mkdir(closed, { mode: 0o700 })
  await mkdir(home)
  await cp(BUILT, join(checkout, 'dist', 'proxy'), { recursive: true })
  await writeFile(join(checkout, 'package.json'), '{"type": "module"}')
  await symlink(join(packageRoot, 'node_modules'), join(checkout, 'node_modules'))
  await writeFile(join(home, 'config.json'), JSON.stringify({ listen: { control: 'control.sock' }, ca: { directory: 'ca' }, audit: { file: 'audit.jsonl' } }))
  return { program: join(checkout, 'dist', 'proxy', 'main.js'), home }
}

async function start ({ program, home }: { program: string, home: string }, user: string, by: readonly string[] = []): Promise<string> {
  const [file = '', ...args] = [...by, process.execPath, program, '--user', user, '--config', 'config.json', '--check-config']
  try {
    await run(file, args, { cwd: home })
    return 'fine'
  } catch (error) {
    return error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error)
  }
}

t.test('it runs as a user who could not read it', { skip }, async (t) => {
  const copy = await place(t)
  t.equal(await start(copy, `${USER}:${USER}`), 'fine')
  const barred = await start(copy, `${USER}:${USER}`, ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups'])
  t.match(barred, /EACCES|Cannot find module/, 'which that user could not')
})

t.test('a program that its user may not read, as a strict umask makes it, is one line that says what to do', { skip }, async (t) => {
  const copy = await place(t)
  await chmod(dirname(copy.program), 0o700)
  t.match(await start(copy, `${USER}:${USER}`), /the proxy's user may not read the proxy's program: chmod -R go=rX \//)
})

t.test('it runs when it is that user already, which is how it starts on a Node that lets no program give up root', { skip }, async (t) => {
  const copy = await place(t)
  await chmod(join(dirname(copy.program), '../../..'), 0o755)
  t.equal(await start(copy, `${USER}:${USER}`, ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups']), 'fine')
})

t.test('it reads its configuration as that user', { skip }, async (t) => {
  const copy = await place(t)
  await chmod(join(copy.home, 'config.json'), 0o600)
  t.match(await start(copy, `${USER}:${USER}`), /config\.json/)
})

t.test('root is no user to become, and what is no user is refused', { skip }, async (t) => {
  const copy = await place(t)
  for (const user of ['0:0', `${USER}:0`, `0:${USER}`, USER, 'nobody', '', `${USER}:${USER}:1`]) t.match(await start(copy, user), /--user: .* is not UID:GID of a user other than root/, user)
})

t.test('who is not root cannot become another user', { skip }, async (t) => {
  const copy = await place(t)
  await chmod(join(copy.program, '..', '..', '..', '..'), 0o755)
  const other = await start(copy, `${USER}:${USER}`, ['setpriv', '--reuid=1899999990', '--regid=1899999990', '--clear-groups'])
  t.match(other, /EPERM/)
})
