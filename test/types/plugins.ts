// What the compiler must refuse in a plugin. Nothing here runs; a line that wrongly compiles fails the type check.
import { Type } from 'typebox'
import { definePlugin, type PluginManifest } from '../../core/plugins/manifest.ts'

const config = Type.Object({ count: Type.Integer({ default: 1 }) }, { additionalProperties: false })

definePlugin({
  manifest: { id: 'typed', provides: ['log'], requires: ['database', 'hypervisors'], config },
  register (registrar, settings) {
    const count: number = settings.count
    // @ts-expect-error the setting does not exist
    registrar.provide('log', () => settings.size)
    // @ts-expect-error the factory makes something else than the key's type
    registrar.provide('log', () => count)
    // @ts-expect-error no such key
    registrar.provide('nothing', () => count)
    // @ts-expect-error no such slot
    registrar.fill('log', () => count)
  },
  async start (deps, settings) {
    const { log, hypervisors } = deps
    // @ts-expect-error services cannot be replaced
    deps.log = log
    log.info({ count: settings.count, drivers: [...hypervisors.keys()] }, 'typed')
  }
})

definePlugin({
  manifest: { id: 'narrow', provides: [], requires: ['log'], optional: ['database'], config },
  async start (deps) {
    deps.log.info('typed')
    // @ts-expect-error it may be undefined
    await deps.database.raw('select 1')
    await deps.database?.raw('select 1')
    // @ts-expect-error the manifest says nothing of it
    deps.secrets.seal('', '')
  },
  register (registrar) {
    // @ts-expect-error a key of others
    registrar.provide('secrets', () => { throw new Error('never made') })
    // @ts-expect-error it joins no slot
    registrar.fill('hypervisors', () => { throw new Error('never made') })
  }
})

// @ts-expect-error a key that nobody declares cannot be required
export const manifest: PluginManifest = { id: 'typed', provides: [], requires: ['nothing'], config }
