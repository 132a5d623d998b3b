// What the guest plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { GuestGone, KernelHeadersUnavailable, KernelPackageUnknown, KernelUnavailable } from './errors.ts'

const path = (description: string) => Type.Optional(Type.String({ minLength: 1, description }))

export const GuestConfig = Type.Object({
  kernelPackage: Type.String({
    default: 'linux-image-cloud-amd64',
    pattern: '^[a-z0-9][a-z0-9.+-]+$',
    description: 'Debian package of the guest kernel, or a metapackage that depends on one'
  }),
  kernelPath: path('Own kernel instead of the package (bzImage or vmlinux); needs modulesPath'),
  modulesPath: path('Folder of the own kernel\'s modules, as /lib/modules/<release>'),
  kernelCache: path('Folder for downloaded packages, which several servers may share; default: <data>/system/cache'),
  kernelHeaders: Type.Boolean({ default: true, description: 'Whether instances without skip_kernel_headers get the kernel\'s modules and headers; false: no instance does' }),
  kernelArguments: Type.Array(Type.String({ minLength: 1, pattern: '^\\S+$' }), { default: [], description: 'Further words for the kernel command line' }),
  prepare: Type.Boolean({ default: true, description: 'Whether the system is fetched and built in the background right after the start rather than for the first VM' }),
  answerTimeout: Duration('2m', 'How long a link waits for the first word of its guest, which may be booting')
}, { additionalProperties: false })

export type GuestConfig = Static<typeof GuestConfig>

export const manifest = {
  id: 'guest',
  provides: ['guest'],
  requires: ['log', 'commands', 'server'],
  errors: [GuestGone, KernelUnavailable, KernelPackageUnknown, KernelHeadersUnavailable],
  hostPackages: [{ name: 'kmod', commands: ['depmod'], need: 'server', use: 'kernel headers in machines' }],
  config: GuestConfig
} as const satisfies PluginManifest<typeof GuestConfig>

export type Deps = DepsOf<typeof manifest>
