// Installs the services, or upgrades them in place: new files first, then a restart. When a step fails, everything is undone.
import { readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parse } from 'yaml'
import { createUndo, type Undo } from '../../core/undo.ts'
import { isThere } from '../../core/fs/is-there.ts'
import { version } from '../../core/version.ts'
import { isSameTree } from './copy.ts'
import { configFiles, systemFiles, unitsOf, type PlacedFile } from './files.ts'
import { asideOf, makeFolders, placeFile, removeEmpty, setAside } from './place.ts'
import { CONFIG_FOLDER, DATA_FOLDERS, PROGRAM, PROXY, PROXY_DATA, RUN_FOLDER, SERVER, USER } from './places.ts'
import { readRecord, type InstallRecord } from './record.ts'
import { stageProgram } from './stage.ts'
import { SERVICES, type System } from './system.ts'

export interface InstallOptions {
  /** folder that stands for `/` */
  readonly root: string
  readonly node: string
  /** systemd of this system; absent when only files are wanted */
  readonly system: System | undefined
  readonly say: (line: string) => void
}

interface Changes {
  readonly program: boolean
  /** paths of files outside the program that are new, changed, or removed */
  readonly files: readonly string[]
}

/** Which steps with systemd were done. */
interface Steps {
  isReloaded: boolean
  readonly restarted: string[]
  /** number of the newest copy of the database before the new server could change it */
  newestCopy: number
}

/** @returns whether anything was changed */
export async function install (options: InstallOptions): Promise<boolean> {
  const { root, system, say } = options
  await system?.check()
  await checkServerConfig(root)
  const undo = createUndo()
  try {
    await takeProgramBack(root)
    const before = await readRecord(root)
    const steps: Steps = { isReloaded: false, restarted: [], newestCopy: 0 }
    // Added first, so that it runs last: when the old files are back.
    if (system !== undefined) undo.add(async () => { await goBack(system, steps, before) })
    const changes = await placeAll(options, before, undo)
    if (system !== undefined) await bringUp(system, changes, before === undefined, steps, undo, say)
    undo.drop()
    for (const path of [...changes.program ? [PROGRAM] : [], ...changes.files]) await rm(asideOf(join(root, path)), { recursive: true, force: true })
    const isChanged = changes.program || changes.files.length > 0
    say(isChanged ? `Berth ${version} is installed` : `Berth ${version} was installed already: nothing changed`)
    return isChanged
  } catch (error) {
    say('a step failed: everything goes back to what it was')
    for (const failure of await undo.run()) say(`and that failed too: ${failure instanceof Error ? failure.message : String(failure)}`)
    throw error
  }
}

/** An installation that was killed may have moved the program away, and put nothing in its place: with it would go the record of what is outside of it. */
async function takeProgramBack (root: string): Promise<void> {
  const target = join(root, PROGRAM)
  if (!await isThere(target) && await isThere(asideOf(target))) await rename(asideOf(target), target)
}

async function placeAll (options: InstallOptions, before: InstallRecord | undefined, undo: Undo): Promise<Changes> {
  const { root, say } = options
  const [files, configs] = [await systemFiles(), configFiles()]
  const folders = before === undefined ? [] : [...before.folders]
  for (const { path } of [{ path: PROGRAM }, ...files, ...configs]) folders.push(...await makeFolders(root, dirname(path), undo))
  const written = await writeConfigs(root, configs, undo, say)
  const record: InstallRecord = { version, files: files.map(({ path }) => path), configs: [...before?.configs ?? [], ...written], folders }
  const program = await placeProgram(options, record, undo)
  const changed: string[] = []
  for (const file of files) if (await placeFile(root, file, undo)) changed.push(file.path)
  for (const path of before?.files ?? []) if (!record.files.includes(path) && await setAside(join(root, path), undo)) changed.push(path)
  for (const path of changed) say(`  ${path}`)
  return { program, files: changed }
}

async function writeConfigs (root: string, configs: readonly PlacedFile[], undo: Undo, say: (line: string) => void): Promise<string[]> {
  const written: string[] = []
  for (const config of configs) {
    if (await isThere(join(root, config.path))) say(`  ${config.path} is there already, and stays as it is`)
    else {
      await placeFile(root, config, undo)
      say(`  ${config.path}`)
      written.push(config.path)
    }
  }
  return written
}

/** @returns whether it differs from the one before; also when an installation that was killed had placed it, since nothing may have been restarted since */
async function placeProgram ({ root, node, say }: InstallOptions, record: InstallRecord, undo: Undo): Promise<boolean> {
  const target = join(root, PROGRAM)
  const stage = `${target}.berth-new`
  await rm(stage, { recursive: true, force: true })
  undo.add(async () => { await rm(stage, { recursive: true, force: true }) })
  await stageProgram(stage, node, record)
  if (await isThere(target) && isSameTree(stage, target)) {
    await rm(stage, { recursive: true })
    return await isThere(asideOf(target))
  }
  await setAside(target, undo)
  await rename(stage, target)
  undo.add(async () => { await rm(target, { recursive: true }) })
  say(`  ${PROGRAM}`)
  return true
}

async function bringUp (system: System, { program, files }: Changes, isFirst: boolean, steps: Steps, undo: Undo, say: (line: string) => void): Promise<void> {
  const units = unitsOf(files)
  if (isFirst) await undoUsersAndFolders(system, undo)
  await system.makeUsersAndFolders()
  await system.checkConfigs()
  steps.newestCopy = await system.newestCopy()
  steps.isReloaded = true
  await system.systemctl('daemon-reload')
  // Runs before their files are removed.
  if (isFirst) undo.add(async () => { await system.disable(units) })
  await system.systemctl('enable', ...SERVICES)
  const sockets = units.filter(unit => unit.endsWith('.socket'))
  // A socket keeps the settings that it was opened with: only changes of sockets cut guests off for a moment.
  if (!isFirst && sockets.length > 0) {
    steps.restarted.push(PROXY)
    await system.stopActivated(PROXY, sockets)
  }
  for (const service of SERVICES) {
    const verb = program || units.includes(service) ? 'restart' : 'start'
    steps.restarted.push(service)
    await system.bringUp(verb, service)
    say(`  ${verb}ed ${service}`)
  }
}

/** A folder that has data stays, and so does the user that owns it. */
async function undoUsersAndFolders (system: System, undo: Undo): Promise<void> {
  if (!await system.hasUser(USER)) undo.add(async () => { if (!await isThere(PROXY_DATA)) await system.removeUser(USER) })
  for (const folder of [...DATA_FOLDERS, RUN_FOLDER]) if (!await isThere(folder)) undo.add(async () => { await removeEmpty(folder) })
}

/** Runs after the old files are back. A service that was not restarted still runs the old program. */
async function goBack (system: System, { isReloaded, restarted, newestCopy }: Steps, before: InstallRecord | undefined): Promise<void> {
  if (isReloaded) await system.systemctl('daemon-reload')
  if (before !== undefined && restarted.includes(SERVER)) await bringDatabaseBack(system, newestCopy)
  if (before !== undefined) for (const service of new Set(restarted)) await system.bringUp('restart', service)
}

/** The old server refuses a database that the new one has migrated. */
async function bringDatabaseBack (system: System, copyBefore: number): Promise<void> {
  const copy = await system.newestCopy()
  if (copy === copyBefore) return
  await system.systemctl('stop', SERVER)
  await system.bringDatabaseBack(copy)
}

/** The server and systemd must not both manage the proxy, and an operator's file is not ours to change. */
async function checkServerConfig (root: string): Promise<void> {
  const path = `${CONFIG_FOLDER}/berth.yaml`
  if (!await isThere(join(root, path))) return
  const manage = ['plugins', 'egress', 'config', 'proxy', 'manage'].reduce(member, parse(await readFile(join(root, path), 'utf8')) as unknown)
  if (manage === false) return
  throw new Error(`${path} is there already and lets ${SERVER} look after the egress proxy itself; as a service, systemd does that. Put into it:
plugins:
  egress:
    config:
      proxy:
        manage: false
        controlSocket: /run/berth-egress/control.sock`)
}

function member (value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
}
