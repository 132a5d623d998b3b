// `npm run install-vmm -- NAME [--from FILE] [--to FOLDER]`: installs a VMM's programs, from its pinned release or from a file, and says which it was.
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { homedir, machine, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { hasCode } from '../../core/errors/system-code.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { downloadChecked, findAsset, sha256Of } from './download.ts'
import { RELEASES, type Release } from './releases.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { from: { type: 'string' }, to: { type: 'string' }, api: { type: 'string', default: 'https://api.github.com' } }
})
const commands = createHostCommands()

async function install (name: string | undefined): Promise<void> {
  const release = name === undefined || !Object.hasOwn(RELEASES, name) ? undefined : RELEASES[name]
  if (release === undefined || positionals.length > 1) throw new Error(`name one of ${Object.keys(RELEASES).join(', ')}`)
  const to = values.to ?? (process.getuid?.() === 0 ? '/usr/local/bin' : join(homedir(), '.local/bin'))
  const folder = await mkdtemp(join(tmpdir(), 'berth-install-vmm-'))
  try {
    const file = join(folder, 'file')
    await writeFile(file, await contentOf(release), { mode: 0o600 })
    const programs = await programsIn(release, file, folder)
    await checkVersion(release, programs)
    await mkdir(to, { recursive: true })
    for (const [program, path] of Object.entries(programs)) {
      // Written beside its place and renamed, so that it is never there in part.
      const fresh = join(to, `.${program}.${process.pid}`)
      await copyFile(path, fresh)
      await chmod(fresh, 0o755)
      await rename(fresh, join(to, program))
      console.log(`installed ${join(to, program)}`)
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function contentOf ({ repository, tag, asset }: Release): Promise<Buffer> {
  const name = asset(machine())
  if (values.from === undefined) {
    const published = await findAsset(values.api, repository, tag, name)
    const content = await downloadChecked(published)
    console.log(`fetched ${published.url}, whose checksum is the one that is published beside it: ${published.sha256}`)
    return content
  }
  const content = await readFile(values.from)
  const beside = `${values.from}.sha256.txt`
  const wanted = await readFile(beside, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  const is = sha256Of(content)
  if (wanted === undefined) {
    console.log(`took ${values.from}, which has the checksum ${is}; it was checked against nothing, as there is no ${beside}`)
    return content
  }
  if (wanted.trim().split(/\s+/)[0] !== is) throw new Error(`${values.from} has the checksum ${is}, and ${beside} another; nothing was installed`)
  console.log(`took ${values.from}, whose checksum is the one in ${beside}: ${is}`)
  return content
}

/** Paths by the name under which each is installed. A file that is not an archive is the program itself. */
async function programsIn ({ members, program }: Release, file: string, folder: string): Promise<Record<string, string>> {
  if (members === undefined || !await isArchive(file)) return { [program]: file }
  const wanted = members(machine())
  await commands.run('tar', ['-xzf', file, '-C', folder, '--no-same-owner', '--transform', 's,.*/,member-,', ...Object.keys(wanted)])
  return Object.fromEntries(Object.entries(wanted).map(([member, as]) => [as, join(folder, `member-${basename(member)}`)]))
}

async function isArchive (file: string): Promise<boolean> {
  const start = (await readFile(file)).subarray(0, 2)
  return start[0] === 0x1f && start[1] === 0x8b
}

/** The program must run here, and be the expected one. */
async function checkVersion ({ program, version }: Release, programs: Readonly<Record<string, string>>): Promise<void> {
  for (const path of Object.values(programs)) await chmod(path, 0o755)
  const { stdout } = await commands.run(programs[program] ?? '', ['--version'], { timeoutMs: 10_000 })
  if (!stdout.includes(version)) console.log(`it says that it is "${stdout.split('\n')[0] ?? ''}", and ${version} is what Berth was made for`)
}

try {
  await install(positionals[0])
} catch (error) {
  console.error(`install-vmm: ${error instanceof Error ? error.message : String(error)}`)
  process.exit(1)
}
