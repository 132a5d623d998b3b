// Pauses Cloud Hypervisor's VM and writes a snapshot.
import { stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CaptureFailed } from '../../core/library/vmm/errors.ts'
import type { RestClient } from '../../core/library/vmm/rest-client.ts'
import { readWritten, type RestCapture } from '../../core/library/vmm/rest-capture.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { askInfo } from './info.ts'
import { CAPTURED, IMAGE_VERSION, SNAPSHOT } from './names.ts'
import { writeState, type Captured } from './state.ts'
import type { Slow } from './slow.ts'
import { makeSnapshotFolder, removeSnapshotFolder, type SnapshotFolder } from './snapshot-folder.ts'

export function captureOf (folder: RunFolder, client: RestClient, slow: Slow): RestCapture {
  const path = join(folder.path, CAPTURED)
  let captured: Captured = { disks: [] }
  let written: SnapshotFolder | undefined
  const placeOf = (name: string): string => {
    if (written === undefined) throw CaptureFailed('its files were not asked for')
    return written.at(name)
  }
  return {
    imageVersion: IMAGE_VERSION,
    set: (wanted) => slow(wanted === 'paused' ? '/vm.pause' : '/vm.resume'),
    async clear () {
      await written?.close()
      written = undefined
      await removeSnapshotFolder(path)
    },
    async write () {
      written = await makeSnapshotFolder(path)
      captured = await factsOf(folder, client)
      await slow('/vm.snapshot', { destination_url: `file://${CAPTURED}` })
    },
    async takeState (to) {
      await writeFile(to, writeState(captured, (await readWritten(placeOf(SNAPSHOT.state))).toString('utf8')), { flag: 'wx', mode: 0o600 })
    },
    get memory () { return placeOf(SNAPSHOT.memory) }
  }
}

/** The facts that Cloud Hypervisor's own `config.json` would have, too: that file is not kept, since a clone has paths, a TAP and a MAC of its own. */
async function factsOf (folder: RunFolder, client: RestClient): Promise<Captured> {
  const { disks, balloonBytes } = await askInfo(client)
  return {
    disks: await Promise.all(disks.map(async ({ id, path }) => ({ id, bytes: (await stat(join(folder.path, path))).size }))),
    ...balloonBytes === undefined ? {} : { balloonBytes }
  }
}
