// What the compiler must refuse in a plugin. Nothing here runs; a line that wrongly compiles fails the type check.
import { Type } from 'typebox'
import { definePlugin, type PluginManifest } from '../../core/plugins/manifest.ts'

const config = Type.Object({ count: Type.Integer({ default: 1 }) }, { additionalProperties: false })

definePlugin({
  manifest: { id: 'typed', provides: ['log'], requires: ['database', 'hypervisors'], config },
  create (deps, settings) {
    const { hypervisors } = deps
    // @ts-expect-error services cannot be replaced
    deps.hypervisors = hypervisors
    // @ts-expect-error what it provides it makes itself
    const { log } = deps
    // @ts-expect-error the setting does not exist
    const { size } = settings
    return { services: { log: Object(log) }, start: async () => { log.info({ count: settings.count, size, drivers: [...hypervisors.keys()] }) } }
  }
})

definePlugin({
  manifest: { id: 'narrow', provides: [], requires: ['log'], optional: ['database'], config },
  create: (deps) => ({
    async start () {
      deps.log.info('typed')
      // @ts-expect-error it may be undefined
      await deps.database.raw('select 1')
      await deps.database?.raw('select 1')
      // @ts-expect-error the manifest says nothing of it
      deps.secrets.seal('', '')
    }
  })
})

definePlugin({
  manifest: { id: 'poor', provides: ['log'], requires: [], config },
  // @ts-expect-error it promises a service that it does not make
  create: () => ({})
})

definePlugin({
  manifest: { id: 'wrong', provides: ['log'], requires: [], config },
  // @ts-expect-error the service has another type
  create: () => ({ services: { log: 1 } })
})

definePlugin({
  manifest: { id: 'greedy', provides: ['log'], requires: ['secrets'], config },
  // @ts-expect-error a key of others
  create: ({ secrets }) => ({ services: { log: Object(secrets), secrets } })
})

definePlugin({
  manifest: { id: 'empty', provides: [], requires: [], fills: { slot: 'hypervisors', name: 'empty' }, config },
  // @ts-expect-error it promises to fill a slot
  create: () => ({})
})

definePlugin({
  manifest: { id: 'joining', provides: [], requires: [], config },
  // @ts-expect-error it joins no slot
  create: () => ({ filling: 1 })
})

// @ts-expect-error a key that nobody declares cannot be required
export const manifest: PluginManifest = { id: 'typed', provides: [], requires: ['nothing'], config }
