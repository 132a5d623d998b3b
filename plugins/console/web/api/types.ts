// The parts of the API's answers that the pages show.

export type InstanceState = 'Created' | 'Initializing' | 'Running' | 'Paused' | 'Shutdown' | 'Stopped' | 'Standby' | 'Unknown'

export interface Instance {
  readonly id: string
  readonly name: string
  readonly image: string
  readonly state: InstanceState
  readonly state_error?: string | null
  readonly restore_error?: string
  readonly created_at: string
  readonly started_at?: string | null
  readonly stopped_at?: string | null
  readonly expires_at: string | null
  readonly exit_code?: number | null
  readonly exit_message?: string
  readonly hypervisor: string
  readonly vcpus: number
  readonly size: string
  readonly overlay_size: string
  readonly env?: Readonly<Record<string, string>>
  readonly tags?: Readonly<Record<string, string>>
  readonly network: { readonly enabled: boolean, readonly ip?: string | null, readonly mac?: string | null, readonly bandwidth_download?: string, readonly bandwidth_upload?: string }
  readonly volumes: ReadonlyArray<{ readonly volume_id: string, readonly mount_path: string, readonly readonly?: boolean }>
  readonly has_snapshot: boolean
  readonly health_status?: { readonly status: string, readonly last_error: string | null }
  /** absent in instances from before it was stored */
  readonly source?: { readonly kind: 'image' | 'template' | 'instance' | 'snapshot', readonly id: string, readonly name?: string }
}

export interface InstanceStats {
  readonly cpu_seconds: number
  readonly memory_rss_bytes: number
  readonly allocated_memory_bytes: number
  readonly network_rx_bytes: number
  readonly network_tx_bytes: number
}

export interface Snapshot {
  readonly id: string
  readonly name: string | null
  readonly kind: 'Standby' | 'Stopped'
  readonly source_instance_id: string
  readonly source_instance_name: string
  readonly created_at: string
  readonly size_bytes: number
  readonly compressed_size_bytes: number | null
  readonly compression_state: string
}

export interface Image {
  readonly name: string
  readonly digest: string
  readonly status: string
  readonly created_at: string
  readonly error: string | null
  readonly size_bytes: number | null
}

/** `GET /images/{name}?details=true` */
export interface ImageDetails {
  readonly layers: ReadonlyArray<{ readonly digest: string, readonly media_type: string | null, readonly size_bytes: number, readonly created_by: string | null, readonly shared_by: number }> | null
  readonly layer_count: number | null
  readonly compressed_bytes: number
  readonly shared_compressed_bytes: number | null
  readonly own_compressed_bytes: number | null
  readonly disk_bytes: number | null
  readonly names: readonly string[]
  readonly used_by: { readonly total: number, readonly holders: ReadonlyArray<{ readonly kind: string, readonly id: string }> }
}

export interface Template {
  readonly id: string
  readonly hypervisor: string
  readonly vcpus: number
  readonly size: string
  readonly network: boolean
  readonly disk_bytes: number
  readonly last_used_at: string
  readonly spares: number
  readonly instances: number
}

export interface Footprint {
  readonly memory: { readonly resident_bytes: number, readonly proportional_bytes: number, readonly own_bytes: number, readonly shared_bytes: number } | null
  readonly memory_reason?: string
  readonly disk: { readonly total_bytes: number, readonly writable_disk_bytes: number, readonly memory_bytes: number, readonly other_bytes: number, readonly shared_bytes: number | null, readonly own_bytes: number | null }
}

export interface Build {
  readonly id: string
  readonly image_digest?: string | null
  readonly status: string
  readonly image_ref: string | null
  readonly error: string | null
  readonly created_at: string
  readonly duration_ms: number | null
}

export interface Volume {
  readonly id: string
  readonly name: string
  readonly size_gb: number
  readonly created_at: string
  readonly attachments: ReadonlyArray<{ readonly instance_id: string, readonly mount_path: string, readonly readonly: boolean }>
}

export interface EgressEntry {
  readonly seq: number
  readonly time: string
  readonly protocol: string
  readonly host: string
  readonly port: number
  readonly method?: string
  readonly path?: string
  readonly status?: number
  readonly injected: readonly string[]
  readonly reason?: string
  readonly bytes_in: number
  readonly bytes_out: number
  readonly duration_ms: number
}

export interface EgressLog {
  readonly mode: 'none' | 'all' | 'http_https_only'
  readonly credentials: readonly string[]
  readonly entries: readonly EgressEntry[]
  readonly next: number
}

export interface ApiEvent {
  readonly type: string
  readonly id?: string
  readonly timestamp?: string
  readonly data?: { readonly resource: string, readonly id: string, readonly name: string | null, readonly status: string } & Readonly<Record<string, unknown>>
}
