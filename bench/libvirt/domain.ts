// The libvirt domain for the same machine as the one that the server boots: made from the command line of its VMM.

export interface DomainFiles {
  readonly rootfs: string
  readonly overlay: string
  readonly output: string
  readonly report: string
  readonly vmm: string
  readonly agentSocket: string
}

export interface DomainOptions {
  readonly name: string
  readonly memoryMib: number
  /** command line of the VMM; the domain gets its kernel, initrd and processor */
  readonly argv: readonly string[]
  readonly files: DomainFiles
}

/** The domain as libvirt's XML. */
export function domainXml ({ name, memoryMib, argv, files }: DomainOptions): string {
  const [model = '', ...features] = argument(argv, '-cpu').split(',')
  const cache = /tb-size=(\d+)/.exec(argument(argv, '-accel'))?.[1] ?? '256'
  return `<domain type='qemu'>
  <name>${text(name)}</name>
  <memory unit='MiB'>${memoryMib}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>${text(argument(argv, '-kernel'))}</kernel>
    <initrd>${text(argument(argv, '-initrd'))}</initrd>
    <cmdline>${text(argument(argv, '-append'))}</cmdline>
  </os>
  <features><acpi/><tcg><tb-cache unit='MiB'>${cache}</tb-cache></tcg></features>
  <cpu mode='custom' match='exact' check='none'>
    <model fallback='forbid'>${text(model)}</model>
    ${features.map(feature => `<feature policy='${feature.startsWith('-') ? 'disable' : 'require'}' name='${text(feature.slice(1))}'/>`).join('\n    ')}
  </cpu>
  <clock offset='utc'><timer name='hpet' present='no'/></clock>
  <devices>
    <controller type='usb' model='none'/>
    <controller type='virtio-serial' index='0' ports='4'/>
    <memballoon model='none'/>
    ${disk(files.rootfs, 'vda', 'root', true)}
    ${disk(files.overlay, 'vdb', 'overlay', false)}
    <channel type='unix'><source mode='bind' path='${text(files.agentSocket)}'/><target type='virtio' name='berth.agent'/></channel>
    <channel type='file'><source path='${text(files.output)}' append='on'/><target type='virtio' name='berth.output'/></channel>
    <channel type='file'><source path='${text(files.report)}' append='on'/><target type='virtio' name='berth.report'/></channel>
    <serial type='file'><source path='${text(files.vmm)}' append='on'/></serial>
    <rng model='virtio'><backend model='builtin'/></rng>
  </devices>
</domain>
`
}

/** The path of the first disk in a VMM's command line. */
export function rootfsOf (argv: readonly string[]): string {
  for (const [index, word] of argv.entries()) {
    if (word !== '-blockdev') continue
    const path = /"filename":"([^"]+)"/.exec(argv[index + 1] ?? '')?.[1]
    if (path !== undefined) return path
  }
  throw new Error('the command line names no disk')
}

function disk (path: string, device: string, serial: string, readonly: boolean): string {
  return `<disk type='file' device='disk'>
      <driver name='qemu' type='raw' discard='unmap' io='threads'/>
      <source file='${text(path)}'/><target dev='${device}' bus='virtio'/>${readonly ? '<readonly/>' : ''}<serial>${serial}</serial>
    </disk>`
}

function argument (argv: readonly string[], name: string): string {
  const value = argv[argv.indexOf(name) + 1]
  if (!argv.includes(name) || value === undefined) throw new Error(`the command line has no ${name}`)
  return value
}

function text (value: string): string {
  return value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll("'", '&apos;')
}
