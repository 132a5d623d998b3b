// The fake driver as a third party's plugin. Its entries, index.ts (fills `vz`) and as-qemu.ts (fills `qemu`), are loaded by path.
import { readFile } from 'node:fs/promises'
import { Type } from 'typebox'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createFakeDriver } from './driver.ts'
import type { FakeScript } from './script.ts'

export const FakeConfig = Type.Object({
  scriptFile: Type.Optional(Type.String({ minLength: 1, description: 'JSON file with the script of the VMs to come, read at each launch; none there is an empty script' }))
}, { additionalProperties: false })

export function fakePlugin (name: string) {
  return definePlugin({
    manifest: {
      id: 'hypervisor-fake',
      provides: [],
      requires: [],
      fills: { slot: 'hypervisors', name },
      config: FakeConfig
    },
    create: (_deps, config) => ({ filling: createFakeDriver(name, () => readScript(config.scriptFile)) })
  })
}

async function readScript (file: string | undefined): Promise<FakeScript> {
  if (file === undefined) return {}
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    throw error
  }
}
