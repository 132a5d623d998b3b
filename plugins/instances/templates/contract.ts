// What others know of templates and spare VMs, without how these are made.
import type { MemoryImage, Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { Connection } from '../parts/connection.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import type { TemplateFiles } from './paths.ts'

/** The part of an instance's spec that its VM is built by. */
export interface VmShape {
  readonly hypervisor: string
  readonly vcpus: number
  readonly memoryBytes: number
  /** templates are of VMs without */
  readonly hotplugBytes?: number
  /** name of the disk with the kernel's modules and headers; absent: none */
  readonly kernelHeaders?: string
  /** absent: none */
  readonly network?: { readonly enabled: boolean }
}

export interface Shape extends VmShape {
  /** changes with VMM, processor, devices, kernel, initrd and everything else that makes a template useless for a VM */
  readonly key: string
}

/** What `template.json` says. */
export interface Template extends VmShape {
  readonly version: number
  readonly key: string
  readonly image: MemoryImage
}

/** A template that stays on disk until it is let go of. */
export interface TemplateUse {
  readonly template: Template
  readonly files: TemplateFiles
  release (): void
}

/** A VM that is nobody's instance, without its VMM: a row, a folder and what an instance holds. */
export interface Hidden {
  readonly record: InstanceRecord
  readonly paths: InstancePaths
  /** an instance that it becomes goes on with it */
  readonly connection: Connection
  /** Removes files, parts and row; its VM must have ended. */
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
  /** Whether it can be used: the VM is paused and its guest could be spoken to. */
  readonly isGood: boolean
  /** Gives it the disks of an instance. The same again costs nothing. */
  putDisks (rootfs: string, overlayBytes: number): Promise<void>
  /** Gives it the writable disk that it will most probably need; nothing to do where that cannot be. */
  putOverlay (): Promise<void>
  /** Ends it, with everything that it has. Never rejects. */
  end (): Promise<void>
  /** It is an instance from now on: whoever has it ends it. */
  handOver (): void
}

export interface Templates {
  /** Removes what a crash has left. The VMs of the server before are gone by then; see adopt.ts. */
  open (): Promise<void>
  /** Ends what is being made, and all spare VMs. */
  close (): Promise<void>
  /** Undefined when VMs of this kind boot cold. */
  shapeOf (spec: InstanceSpec): Promise<Shape | undefined>
  /** Nothing is made in the background while `work` goes on. */
  during<T> (work: () => Promise<T>): Promise<T>
  /** A spare VM, which is the caller's from now on. */
  take (shape: Shape): Spare | undefined
  /** Takes a spare VM back that nothing has happened to. */
  giveBack (spare: Spare): void
  /** The template, which stays until it is released. */
  use (shape: Shape): TemplateUse | undefined
  /** Drops a template that VMs could not be made of. */
  drop (shape: Shape): Promise<void>
  /** Sees to it that the next VM of this shape comes up quickly. */
  want (shape: Shape, overlayBytes: number): void
  /** Gives up a VM of the server's own, so that an instance can have its user. False when there is none. */
  giveUpOne (): Promise<boolean>
  count (): { readonly templates: number, readonly spares: number }
}
