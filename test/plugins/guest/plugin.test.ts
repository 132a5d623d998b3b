// The plugin as core sees it: its settings, and that a start without a kernel does not hold the server up.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { asValue, createContainer } from 'awilix'
import { pino } from 'pino'
import t from 'tap'
import { Value } from 'typebox/value'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { cradleFor } from '../../../core/plugins/registrar.ts'
import { plugin } from '../../../plugins/guest/index.ts'
import { GuestConfig, manifest } from '../../../plugins/guest/manifest.ts'
import { testFolder } from '../../helpers/folder.ts'

const DEFAULTS = Value.Parse(GuestConfig, Value.Default(GuestConfig, {}))

t.test('the defaults are a working configuration', async (t) => {
  t.match(DEFAULTS, { kernelPackage: 'linux-image-cloud-amd64', prepare: true })
  t.notOk(Value.Check(GuestConfig, { ...DEFAULTS, kernelPackage: '-o Dir::x' }), 'a package name cannot be an option of apt')
  t.notOk(Value.Check(GuestConfig, { ...DEFAULTS, kernelPakage: 'x' }), 'unknown settings are refused')
})

t.test('the server starts while the kernel cannot be had; who needs it gets the reason', async (t) => {
  const dataDir = testFolder(t)
  await mkdir(join(dataDir, 'system/.build-old'), { recursive: true })
  const commands: HostCommands = { run: () => Promise.reject(new Error('this host has no apt')) }
  const container = createContainer({ injectionMode: 'PROXY', strict: true })
  container.register({ log: asValue(pino({ level: 'silent' })), commands: asValue(commands), server: asValue({ dataDir }) })
  const deps = cradleFor(container, manifest, () => true)
  const created = await plugin.create?.(deps, DEFAULTS)
  await created?.start?.(new AbortController().signal)
  t.same(await readdir(join(dataDir, 'system')), [], 'what a killed build left is gone')
  await t.rejects(async () => await created?.services?.guest?.system(), /this host has no apt|npm run build/)
  await created?.stop?.()
})
