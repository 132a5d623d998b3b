// The types of templates.
import type { MemoryImage } from '../../../core/library/hypervisor.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { CreateWay } from './metrics.ts'
import type { TemplateFiles } from './paths.ts'

/** The part of an instance's spec that its VM is built from. */
export interface VmShape {
  readonly hypervisor: string
  readonly vcpus: number
  readonly memoryBytes: number
  /** absent in templates */
  readonly hotplugBytes?: number
  /** name of the disk with the kernel's modules and headers; absent: none */
  readonly kernelHeaders?: string
  /** absent: none */
  readonly network?: { readonly enabled: boolean }
  /** whether its disks have a limit, where a VM keeps having one or none; absent: no, or its VMs can be given any */
  readonly limitsDisks?: true
}

export interface Shape extends VmShape {
  /** changes with VMM, processor, devices, kernel, initrd and everything else that makes a template unusable for a VM */
  readonly key: string
}

/** The content of `template.json`. */
export interface Template extends VmShape {
  readonly version: number
  readonly key: string
  readonly image: MemoryImage
}

/** A template, and what is known of it. */
export interface TemplateFacts {
  readonly template: Template
  /** of its files on the disk */
  readonly bytes: number
  /** epoch `ms` */
  readonly lastUsedAt: number
  readonly spares: number
}

/** A template in use, which stays on disk until it is released. */
export interface TemplateUse {
  readonly template: Template
  readonly files: TemplateFiles
  release (): void
}

export interface Templates {
  /** Removes what a crash has left. The VMs of the server before are gone by then; see adopt.ts. */
  open (): Promise<void>
  /** Undefined when VMs of this spec boot cold. */
  shapeOf (spec: InstanceSpec): Promise<Shape | undefined>
  /** The template of a shape, which stays until it is released. */
  use (shape: Shape): TemplateUse | undefined
  /** Removes a template that VMs could not be made of. */
  drop (shape: Shape): Promise<void>
  /** Those on the disk; the one that was used last comes first. */
  list (): TemplateFacts[]
  /** Removes a template with its spare VMs, once nobody uses it; false when there is none. The next VM of its shape that is wanted makes it anew. */
  remove (key: string): Promise<boolean>
  /** Plans what is missing so that the next VM of this shape comes up quickly. @param way how the last one did */
  want (shape: Shape, overlayBytes: number, way: CreateWay): void
  count (): number
}
