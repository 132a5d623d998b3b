// Plugins that provide what a scripted host acts, with the errors that the real ones declare.
import { Type } from 'typebox'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { definePlugin, type Plugin, type PluginManifest } from '../../../core/plugins/manifest.ts'
import type { GuestService } from '../../../plugins/guest/contract.ts'
import { manifest as guestManifest } from '../../../plugins/guest/manifest.ts'
import { manifest as qemuManifest } from '../../../plugins/hypervisor-qemu/manifest.ts'
import type { ImageService } from '../../../plugins/images/contract.ts'
import type { EgressService } from '../../../plugins/instances/egress/contract.ts'
import { manifest as imagesManifest } from '../../../plugins/images/manifest.ts'
import type { NetworkService } from '../../../plugins/networking/contract.ts'
import { manifest as networkingManifest } from '../../../plugins/networking/manifest.ts'

export interface Acted {
  readonly driver: HypervisorDriver
  readonly guest: GuestService
  readonly images: ImageService
  readonly network?: NetworkService | undefined
  readonly egress?: EgressService | undefined
}

/** A plugin for each, those of the network and of egress only where there is one. */
export function scriptedPlugins ({ driver, guest, images, network, egress }: Acted): Plugin[] {
  const config = Type.Object({}, { additionalProperties: false })
  return [
    ...network === undefined ? [] : [definePlugin({ manifest: { ...errorsOf(networkingManifest), id: 'networking', provides: ['network'], requires: [], config }, create: () => ({ services: { network } }) })],
    ...egress === undefined ? [] : [definePlugin({ manifest: { errors: [{ code: 'egress_unavailable', kind: 'unavailable' }], id: 'egress', provides: ['egress'], requires: [], config }, create: () => ({ services: { egress } }) })],
    definePlugin({ manifest: { ...errorsOf(guestManifest), id: 'guest', provides: ['guest'], requires: [], config }, create: () => ({ services: { guest } }) }),
    definePlugin({ manifest: { ...errorsOf(imagesManifest), id: 'images', provides: ['images'], requires: [], config }, create: () => ({ services: { images } }) }),
    definePlugin({ manifest: { ...errorsOf(qemuManifest), id: 'hypervisor-qemu', provides: [], requires: [], fills: { slot: 'hypervisors', name: 'qemu' }, config }, create: () => ({ filling: driver }) })
  ]
}

const errorsOf = ({ errors = [] }: PluginManifest) => ({ errors })
