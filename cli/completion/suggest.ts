// The suggestions that a shell asks for when a key is pressed: `berth complete -- WORDS`. Nothing here may print an error, or take long.
import tab, { type RootCommand } from '@bomb.sh/tab'
import { createApi } from '../api/client.ts'
import { SERVER_COMMANDS } from '../../core/cli/catalogue.ts'
import { version } from '../../core/version.ts'
import { SECTIONS } from '../catalogue/all.ts'
import { COMMON_OPTIONS } from '../catalogue/common.ts'
import { contextsFile, readContexts } from '../connection/contexts.ts'
import { findTarget } from '../connection/target.ts'
import type { CommandSpec, NameKind } from '../spec.ts'

const PATIENCE_MS = 1500
const MOST = 200

export async function suggest (words: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const specs = SECTIONS.flatMap(({ commands }) => commands)
  const spec = specs.filter(({ name }) => name.split(' ').every((word, index) => words[index] === word)).sort((a, b) => b.name.length - a.name.length)[0]
  const names = spec?.names === undefined ? [] : await namesOf(spec.names, environment).catch(() => [])
  for (const each of specs) declare(tab, each, each === spec ? names : [])
  for (const { name, summary } of SERVER_COMMANDS) if (name !== 'restore') tab.command(name, summary)
  tab.parse([...words])
}

function declare (root: RootCommand, { name, summary, args, options = [] }: CommandSpec, names: readonly string[]): void {
  const command = root.command(name, summary)
  for (const { flags, description, values } of [...options, ...COMMON_OPTIONS]) {
    const long = /--([\w-]+)/.exec(flags)?.[1]
    const short = /^-(\w),/.exec(flags)?.[1]
    if (long === undefined) continue
    if (!flags.includes('<')) command.option(long, description, short)
    else command.option(long, description, (complete) => { for (const value of values ?? []) complete(value, '') }, short)
  }
  const first = args?.split(' ', 1)[0] ?? ''
  if (first !== '') command.argument(first.replaceAll(/[<>[\].]/g, ''), (complete) => { for (const each of names) complete(each, '') }, first.includes('...'))
}

async function namesOf (kind: NameKind, environment: NodeJS.ProcessEnv): Promise<string[]> {
  if (kind === 'contexts') return Object.keys((await readContexts(contextsFile(environment))).contexts)
  const api = createApi(await findTarget({}, environment), `berth-cli/${version}`, PATIENCE_MS, AbortSignal.timeout(PATIENCE_MS))
  const items = await api.call<{ readonly id?: string, readonly name?: string | null }[]>('GET', `/${kind}`, { query: { limit: MOST } })
  return items.flatMap(({ id, name }) => name ?? id ?? [])
}
