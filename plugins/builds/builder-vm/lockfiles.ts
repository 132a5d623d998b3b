// The hashes of a source's lock files: they record the versions that a build used, before any of its code runs.
import type { GuestLink } from '../../guest/contract.ts'
import { outputOf } from './guest-command.ts'

const NAMES = [
  'package-lock.json', 'npm-shrinkwrap.json', 'yarn.lock', 'pnpm-lock.yaml', 'bun.lock', 'bun.lockb', 'deno.lock', 'go.sum', 'go.work.sum', 'Cargo.lock',
  'requirements*.txt', 'poetry.lock', 'Pipfile.lock', 'uv.lock', 'pdm.lock', 'pylock.toml', 'Gemfile.lock', 'composer.lock', 'mix.lock', 'rebar.lock', 'pubspec.lock', 'Podfile.lock',
  'Package.resolved', 'packages.lock.json', 'gradle.lockfile', 'flake.lock', 'conda-lock.yml', 'Manifest.toml', 'stack.yaml.lock', 'cabal.project.freeze'
]
/** Folders with other projects' files, which the source contains. */
const NOT_BELOW = ['node_modules', '.git', 'vendor']
const MAX_FILES = 500

/** sha256 by path below `folder` in the guest. */
export async function lockfileHashes (link: GuestLink, folder: string, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
  const either = (names: readonly string[]): string[] => names.flatMap((name, index) => [...index === 0 ? [] : ['-o'], '-name', name])
  const printed = await outputOf(link, [
    'find', folder, '-xdev', '-type', 'd', '(', ...either(NOT_BELOW), ')', '-prune', '-o', '-type', 'f', '(', ...either(NAMES), ')', '-exec', 'sha256sum', '--zero', '{}', '+'
  ], signal)
  const found: [string, string][] = []
  for (const entry of printed.split('\0')) {
    const [, hash, path] = /^([0-9a-f]{64}) [ *](.+)$/s.exec(entry) ?? []
    if (hash !== undefined && path?.startsWith(`${folder}/`) === true) found.push([path.slice(folder.length + 1), hash])
  }
  return Object.fromEntries(found.sort(([a], [b]) => a < b ? -1 : 1).slice(0, MAX_FILES))
}
