// Secrets at rest: what was sealed opens for the same purpose under the same key and in no other way, and the key is the server's alone.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { buildApp } from '../../../core/app.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { KEY_BYTES, openKey } from '../../../core/secrets/key-file.ts'
import { createSecrets, openSecrets } from '../../../core/secrets/secrets.ts'
import { temporaryFolder } from '../bare-app.ts'

const SECRET = 'sk-live-0123456789 ütf-8 ✓'
const PROGRAM = fileURLToPath(new URL('make-key.js', import.meta.url))
const NO_BUILT_INS = new URL('file:///no-built-ins-of-the-secrets-test/')

async function dataFolder (t: Test): Promise<{ dataDir: string, keys: string, file: string }> {
  const dataDir = await temporaryFolder(t)
  const keys = join(dataDir, 'keys')
  await mkdir(keys, { mode: 0o700 })
  return { dataDir, keys, file: join(keys, 'secrets.key') }
}

/** The error of an `open`, which must say nothing of the text. */
function refusal (t: Test, open: () => string): string {
  try {
    open()
  } catch (error) {
    if (!(error instanceof BerthError)) throw error
    t.equal(error.code, 'secret_unavailable')
    t.notMatch(`${error.message} ${String(error.stack)} ${JSON.stringify(error)}`, /sk-live/)
    return error.message
  }
  throw new Error('it opened')
}

t.test('what was sealed opens again, also in the next server, and never looks the same twice', async (t) => {
  const { dataDir } = await dataFolder(t)
  const secrets = await openSecrets(dataDir)
  for (const text of [SECRET, '', 'x'.repeat(100_000)]) t.equal((await openSecrets(dataDir)).open('egress', secrets.seal('egress', text)), text)
  const sealed = secrets.seal('egress', SECRET)
  t.not(sealed, secrets.seal('egress', SECRET))
  t.notMatch(sealed, /sk-live/)
  t.notMatch(Buffer.from(sealed.split('.')[2] ?? '', 'base64url').toString('latin1'), /sk-live/)
})

t.test('it opens for no other purpose, under no other key, and not when a byte has changed', async (t) => {
  const secrets = createSecrets(Buffer.alloc(KEY_BYTES, 1))
  const sealed = secrets.seal('egress', SECRET)
  t.match(refusal(t, () => secrets.open('builds', sealed)), /for another purpose/)
  t.match(refusal(t, () => createSecrets(Buffer.alloc(KEY_BYTES, 2)).open('egress', sealed)), /sealed under the key [0-9a-f]{16}, and the key in keys\/secrets\.key is [0-9a-f]{16}/)
  for (let at = 0; at < sealed.length; at++) {
    const other = sealed[at] === 'A' ? 'B' : 'A'
    refusal(t, () => secrets.open('egress', `${sealed.slice(0, at)}${other}${sealed.slice(at + 1)}`))
  }
  for (const text of ['', 'v1', SECRET, `${sealed}A`, sealed.slice(0, -1), 'v2' + sealed.slice(2), `${sealed.slice(0, 20)}AAAA`]) refusal(t, () => secrets.open('egress', text))
})

t.test('the key is made once, for the server alone', async (t) => {
  const { keys, file } = await dataFolder(t)
  const made = await Promise.all(Array.from({ length: 8 }, async () => await openKey(file)))
  t.equal(new Set(made.map((key) => key.toString('hex'))).size, 1, 'whoever is first')
  t.same(await readdir(keys), ['secrets.key'])
  const { mode, size } = await stat(file)
  t.equal((mode & 0o777).toString(8), '600')
  t.equal(size, KEY_BYTES)
})

t.test('a key that others can read, or that is none, stops the start with what to do', async (t) => {
  const { dataDir, file } = await dataFolder(t)
  await openKey(file)
  for (const mode of [0o640, 0o604, 0o660, 0o644]) {
    await chmod(file, mode)
    await t.rejects(openKey(file), { message: new RegExp(`^${file} has mode ${mode.toString(8)}.*chmod 600`) })
  }
  const start = buildApp({ server: { dataDir, listen: '127.0.0.1:0' }, log: { level: 'silent' } }, { builtIns: NO_BUILT_INS, environment: {} })
  await t.rejects(start, { message: /secrets\.key has mode 644/ }, 'the server does not start')
  await chmod(file, 0o600)
  for (const bytes of [0, 31, 33]) {
    await writeFile(file, Buffer.alloc(bytes))
    await t.rejects(openKey(file), { message: new RegExp(`has ${bytes} bytes instead of 32: put it back from a backup`) })
  }
  await rm(file)
  await symlink('/dev/zero', file)
  await t.rejects(openKey(file), { message: /is a symbolic link/ })
  await rm(file)
  await mkdir(file)
  await t.rejects(openKey(file), { message: /is not a file/ })
})

t.test('a key of another user is refused', { skip: process.getuid?.() === 0 ? false : 'needs root to give a file away' }, async (t) => {
  const { file } = await dataFolder(t)
  await openKey(file)
  await chown(file, 65_534, 65_534)
  await t.rejects(openKey(file), { message: new RegExp(`^${file} belongs to user 65534 instead of 0: .*chown 0`) })
})

t.test('a server that is killed while it makes the key leaves none, or a whole one', async (t) => {
  const { keys, file } = await dataFolder(t)
  // Wherever it is: each child is killed a little later than the one before.
  for (let delayMs = 0; delayMs < 12; delayMs += 1) {
    const child = spawn(process.execPath, [PROGRAM, file], { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    await once(child.stdout, 'data')
    await new Promise((resolve) => setTimeout(resolve, delayMs / 4))
    child.kill('SIGKILL')
    await exited
    const found = (await readdir(keys)).includes('secrets.key')
    if (found) t.equal((await readFile(file)).length, KEY_BYTES)
    const key = await openKey(file)
    t.same(await openKey(file), key, 'and the next one goes on')
    await rm(file)
  }
})

t.test('what a kill leaves under a temporary name does not matter', async (t) => {
  const { file } = await dataFolder(t)
  await writeFile(`${file}.0000.tmp`, 'half')
  t.equal((await openKey(file)).length, KEY_BYTES)
})
