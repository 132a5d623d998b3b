// Removes what an installation made, and reports what stays.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isThere } from '../../core/fs/is-there.ts'
import { removeJournal } from './journal.ts'
import { removeEmpty, removeFolders } from './place.ts'
import { CONFIG_FOLDER, DATA_FOLDERS, NETWORK, PROGRAM, PROXY, RUN_FOLDER, SERVER, SERVER_CONFIG, USER } from './places.ts'
import { readRecord, type InstallRecord } from './record.ts'
import { unitsOf } from './files.ts'
import { SERVICES, type System } from './system.ts'
import { settleCutOff } from './take-back.ts'
import { vmsOf } from './vms.ts'
import { writtenSetting } from './written-setting.ts'

type Placed = Omit<InstallRecord, 'version'>

export interface UninstallOptions {
  readonly root: string
  readonly purge: boolean
  readonly system: System | undefined
  readonly say: (line: string) => void
}

export async function uninstall ({ root, purge, system, say }: UninstallOptions): Promise<void> {
  const cutOff = await settleCutOff(root, system, say)
  const record = await readRecord(root) ?? (cutOff === undefined ? undefined : { files: [], configs: [], folders: cutOff.folders })
  if (record === undefined) throw new Error(`${join(root, PROGRAM)} holds no installation of Berth`)
  if (system !== undefined) await stop(system, record, { root, purge, say })
  const chosen = await chosenDataFolder(root)
  for (const path of record.files) await rm(join(root, path), { force: true })
  if (purge) await removeKept(root, record, system)
  await rm(join(root, PROGRAM), { recursive: true, force: true })
  await removeJournal(root)
  await removeFolders(root, [...new Set([...record.folders, ...cutOff?.folders ?? []])])
  await system?.systemctl('daemon-reload')
  say('Berth is removed')
  for (const path of [CONFIG_FOLDER, ...DATA_FOLDERS]) if (await isThere(join(root, path))) say(`  ${path} stays${purge ? ': it holds files that are not from here' : ''}`)
  if (chosen !== undefined && await isThere(join(root, chosen))) say(`  ${chosen} stays: it is the data folder that ${SERVER_CONFIG} names, and not one of the installation's own`)
  if (system !== undefined && !purge) say(`  the user ${USER} stays: its files do`)
}

/** The proxy first: once nobody listens in the network's namespace and no VM runs, the server removes the namespace as it ends. */
async function stop (system: System, { files }: Placed, { root, purge, say }: Pick<UninstallOptions, 'root' | 'purge' | 'say'>): Promise<void> {
  if (purge) await refuseWithVms(root)
  // Those of a first installation that was cut off are stopped already.
  if (files.length === 0) return
  const sockets = unitsOf(files).filter(unit => unit.endsWith('.socket'))
  await system.systemctl('disable', ...SERVICES)
  await system.stopActivated(PROXY, sockets)
  await system.systemctl('stop', SERVER)
  // The namespace's unit stops by itself once nobody needs it, and nobody would wait for that: without its file it would be listed for ever. The proxy may have been started again by whoever wants it.
  await system.systemctl('stop', PROXY, NETWORK)
  await system.forgetFailures(unitsOf(files))
  say(`  stopped ${PROXY} and ${SERVER}`)
  // The server may have started one until it ended.
  if (purge) await refuseWithVms(root)
  const [vms, others] = await Promise.all([vmsOf(root), system.leftProcesses()])
  const left = [...vms, ...others.filter(({ pid }) => !vms.some(vm => vm.pid === pid))]
  if (left.length === 0) return
  say(`  these processes of VMs and their network go on without a server; a new installation takes them over:\n${left.map(({ pid, name }) => `    ${pid} ${name}`).join('\n')}`)
}

/** VMs that still run would lose their disks. */
async function refuseWithVms (root: string): Promise<void> {
  const vms = await vmsOf(root)
  if (vms.length > 0) throw new Error(`${vms.length} VMs run (processes ${vms.map(({ pid }) => pid).join(', ')}): delete the instances before --purge removes their disks`)
}

async function removeKept (root: string, { configs }: Placed, system: System | undefined): Promise<void> {
  for (const path of configs) await rm(join(root, path), { force: true })
  await removeEmpty(join(root, CONFIG_FOLDER))
  if (system === undefined) return
  for (const folder of [...DATA_FOLDERS, RUN_FOLDER]) await rm(join(root, folder), { recursive: true, force: true })
  await system.removeUser(USER)
}

/** The data folder, where an operator has chosen one: it may be anything, so nothing here removes it. */
async function chosenDataFolder (root: string): Promise<string | undefined> {
  // A file that is no YAML names none, and must not keep anybody from removing Berth.
  const dataDir = await writtenSetting(root, 'server', 'dataDir').catch(() => undefined)
  return typeof dataDir !== 'string' || DATA_FOLDERS.some(folder => join(folder, '/') === join(dataDir, '/')) ? undefined : dataDir
}
