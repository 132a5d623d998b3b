// What instances, and plugins whose workers have volumes, ask of the plugin volumes. Types only.

export interface VolumeFacts {
  readonly id: string
  readonly name: string
  readonly sizeBytes: number
  /** changes whenever somebody may begin to write the volume, and is another one for another volume with the same id: the memory of a VM that reads it fits only the same number */
  readonly generation: number
}

export interface VolumeClaim {
  readonly volumeId: string
  /** in the guest */
  readonly mountPath: string
  readonly readonly: boolean
}

/** The user of a VM. */
export interface VolumeUser { readonly uid: number, readonly gid: number }

export interface VolumeUsage {
  readonly count: number
  /** of all volumes together, as they were asked for */
  readonly sizeBytes: number
  /** what they take on disk */
  readonly allocatedBytes: number
}

/**
 * A volume is attached to an instance from `attach` to `detach`, whatever state the instance is in: to one that writes it, or to any number that read it. The database
 * decides, so that neither a crash nor another server can make two writers.
 */
export interface VolumeService {
  /** Finds a volume by id, else by name, among those of callers, or those of the plugin `owner`. @throws not_found, ambiguous */
  find (ref: string, owner?: string): Promise<VolumeFacts>
  /** Attaches all of them or none. @throws not_found, volume_in_use (409), also when the instance has one of them already */
  attach (instanceId: string, claims: readonly VolumeClaim[]): Promise<void>
  /** Gives volumes back; all that the instance has when none is named. No VM may have them open. Idempotent. */
  detach (instanceId: string, volumeIds?: readonly string[]): Promise<void>
  /**
   * Makes the file of an attached volume ready for the VM of this user (`undefined`: the server's own), and for no other user: to be called before each VM that is to have it.
   * For a reader, the journal that a writer has left is played back first. Idempotent. @throws volume_damaged
   * @returns the absolute path, the same each time
   */
  open (instanceId: string, claim: VolumeClaim, user: VolumeUser | undefined): Promise<string>
  /**
   * Detaches everything but these: the ids of volumes by instance, or undefined for all that the instance has. An earlier server may have been killed in between. For the plugin that
   * knows the instances, at its start.
   */
  retainOnly (wanted: ReadonlyMap<string, readonly string[] | undefined>): Promise<void>
  /**
   * Makes an empty ext4 that belongs to a plugin: no route shows, attaches or removes it, and it counts like any other. @param request.sizeGb whole GiB
   * @throws already_exists, insufficient_resources
   */
  create (request: { readonly id: string, readonly name: string, readonly sizeGb: number, readonly owner: string }): Promise<void>
  /** Removes a plugin's volume. Idempotent. @throws conflict while it is attached */
  remove (id: string, owner: string): Promise<void>
  /** Ids of the volumes of an owner. */
  ownedBy (owner: string): Promise<readonly string[]>
  usage (): Promise<VolumeUsage>
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly volumes: VolumeService
  }
}
