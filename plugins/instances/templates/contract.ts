// The types of templates and spare VMs.
import type { MemoryImage, Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { Connection } from '../parts/connection.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
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

/** A VM of the server's own, without its VMM: a row, a folder and parts. */
export interface Hidden {
  readonly record: InstanceRecord
  readonly paths: InstancePaths
  /** what the VM is connected to; an instance that the VM becomes keeps it */
  readonly connection: Connection
  /** Removes files, parts and row. The VM must have ended. */
  remove (): Promise<void>
}

/** A paused VM of the server's own, ready to become an instance. */
export interface Spare {
  readonly key: string
  readonly vm: Vm
  readonly imaging: VmImaging
  readonly link: GuestLink
  readonly hidden: Hidden
  readonly record: InstanceRecord
  /** Whether it can be used: the VM is paused, and the link to its guest is open. */
  readonly isGood: boolean
  /** Gives the VM the disks of an instance. Can be repeated at no cost. */
  putDisks (rootfs: string, overlayBytes: number): Promise<void>
  /** Gives the VM the writable disk that it will most probably need. Does nothing where the driver cannot replace disks. */
  putOverlay (): Promise<void>
  /** Ends the VM and removes everything that it has. Never rejects. */
  end (): Promise<void>
  /** The VM is an instance from now on: ending it is up to its new owner. */
  handOver (): void
}

export interface Templates {
  /** Removes what a crash has left. The VMs of the server before are gone by then; see adopt.ts. */
  open (): Promise<void>
  /** Ends the work in the background, and all spare VMs. */
  close (): Promise<void>
  /** Undefined when VMs of this spec boot cold. */
  shapeOf (spec: InstanceSpec): Promise<Shape | undefined>
  /** Nothing is made in the background while `work` goes on. */
  during<T> (work: () => Promise<T>): Promise<T>
  /** Takes a spare VM out of the pool: it is the caller's from now on. */
  take (shape: Shape): Spare | undefined
  /** Takes back a spare VM that nothing has happened to. */
  giveBack (spare: Spare): void
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
  /** Gives up a VM of the server's own, so that an instance can have its user. False when there is none. */
  giveUpOne (): Promise<boolean>
  count (): { readonly templates: number, readonly spares: number }
}
