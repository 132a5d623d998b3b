// Loaded into a real server by `--import`: ends it, as kill -9 does, right before the step of its work that an order in a file names by number. Steps are what others could see of the
// work on an instance: changes in its folder, commits of rows, programs that are started or killed, and what the guest is told.
import childProcess from 'node:child_process'
import { appendFileSync, existsSync, promises, readFileSync, rmSync } from 'node:fs'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'
import { GuestSession } from '../../plugins/instances/guest/guest-session.ts'
import { orderFile, stepsFile } from './killed-at-steps.ts'

const CHANGES = ['chmod', 'chown', 'copyFile', 'mkdir', 'open', 'rename', 'rm', 'writeFile'] as const
/** Both are SQLite; which of them a server takes depends on its Node. */
const DRIVERS = ['better-sqlite3', 'better-sqlite3-napi']
/** They are asked again and again what there is, and change nothing. */
const ASKING = /\bconntrack$/

const folder = process.cwd()
const killProcess = process.kill.bind(process)
let count = 0

function step (name: string): void {
  if (!existsSync(orderFile(folder))) {
    count = 0
    return
  }
  count++
  appendFileSync(stepsFile(folder), `${name}\n`)
  try {
    if (count !== Number(readFileSync(orderFile(folder), 'utf8'))) return
    rmSync(orderFile(folder))
  } catch {
    // The test has taken its order back: whoever removes the file decides.
    return
  }
  killProcess(process.pid, 'SIGKILL')
}

/** Calls `before` with the arguments of each call of a function, and then the function. */
function watch (target: object, name: string, before: (args: readonly unknown[]) => void): void {
  const original: unknown = Reflect.get(target, name)
  if (typeof original !== 'function') throw new Error(`there is no ${name}`)
  Reflect.set(target, name, function (this: unknown, ...args: unknown[]): unknown {
    before(args)
    return Reflect.apply(original, this, args)
  })
}

const isReading = (flags: unknown): boolean => flags === undefined || flags === 'r' || (typeof flags === 'number' && (flags & (promises.constants.O_WRONLY | promises.constants.O_RDWR)) === 0)

for (const change of CHANGES) {
  watch(promises, change, (args) => {
    const paths = args.slice(0, change === 'rename' || change === 'copyFile' ? 2 : 1).map(String)
    if (!paths.some((path) => path.includes('/instances/')) || (change === 'open' && isReading(args[1])) || paths[0]?.endsWith('.log') === true) return
    // What is not there is removed to be sure of it.
    if (change === 'rm' && !paths.some((path) => existsSync(path))) return
    step(`${change} ${paths.map((path) => basename(path)).join(' to ')}`)
  })
}
watch(childProcess, 'spawn', ([program]) => { if (!ASKING.test(String(program))) step(`spawn ${basename(String(program))}`) })
syncBuiltinESMExports()
watch(process, 'kill', ([, signal]) => { if (signal === 'SIGKILL') step('SIGKILL') })
for (const call of ['shutDown', 'sleep', 'wake', 'hush', 'part', 'putAway']) watch(GuestSession.prototype, call, () => { step(`guest: ${call}`) })

const require = createRequire(import.meta.url)
let written = new Set<string>()
for (const driver of DRIVERS.slice(0, Number(process.versions.napi) >= 10 ? 2 : 1)) {
  watch(Object(require(driver)).prototype, 'prepare', ([sql]) => {
    const table = /^(?:insert into|update|delete from) `(\w+)`/.exec(String(sql))?.[1]
    if (table !== undefined) written.add(table)
    if (!/^(?:COMMIT|ROLLBACK)\b/i.test(String(sql))) return
    const tables = [...written].filter((name) => !name.startsWith('events_')).join(' ')
    written = new Set()
    if (tables !== '') step(`commit ${tables}`)
  })
}
