// The parts of the API's answers that the commands read. A test compares these types with the API's own document.

export interface Instance {
  readonly id: string
  readonly name: string
  readonly image: string
  readonly state: string
  readonly created_at: string
  readonly hypervisor?: string
  readonly exit_code?: number | null
  readonly exit_message?: string | null
  readonly state_error?: string | null
  readonly restore_error?: string
  readonly env?: Readonly<Record<string, string>>
  readonly network?: { readonly enabled?: boolean, readonly ip?: string | null }
  readonly tags?: Readonly<Record<string, string>>
  readonly restart_policy?: { readonly policy?: string }
  readonly restart_status?: { readonly blocked_reason?: string | null, readonly next_attempt_at?: string | null }
  readonly health_status?: { readonly status: string, readonly last_error?: string | null }
}
export interface Image { readonly name: string, readonly digest: string, readonly status: string, readonly error?: string | null, readonly size_bytes?: number | null, readonly created_at: string, readonly entrypoint?: readonly string[] | null, readonly cmd?: readonly string[] | null, readonly queue_position?: number | null }
export interface Snapshot { readonly id: string, readonly name?: string | null, readonly kind: string, readonly source_instance_name: string, readonly size_bytes: number, readonly created_at: string, readonly compression_state?: string | null }
export interface Volume { readonly id: string, readonly name: string, readonly size_gb: number, readonly created_at: string, readonly tags?: Readonly<Record<string, string>>, readonly attachments?: readonly { readonly instance_id: string, readonly mount_path: string, readonly readonly: boolean }[] }
export interface Device { readonly id: string, readonly name?: string | null, readonly type: string, readonly pci_address: string, readonly vendor_id: string, readonly device_id: string, readonly attached_to?: string | null }
export interface AvailableDevice { readonly pci_address: string, readonly vendor_id: string, readonly device_id: string, readonly iommu_group: number, readonly vendor_name?: string | null, readonly device_name?: string | null, readonly current_driver?: string | null }
export interface Build { readonly id: string, readonly status: string, readonly image_ref?: string | null, readonly error?: string | null, readonly created_at: string, readonly duration_ms?: number | null }
export interface Push { readonly id: string, readonly status: string, readonly target: string, readonly digest?: string | null, readonly error?: string | null, readonly bytes?: number | null }
export interface Stats { readonly instance_id: string, readonly instance_name: string, readonly cpu_seconds: number, readonly memory_rss_bytes: number, readonly allocated_memory_bytes: number, readonly network_rx_bytes: number, readonly network_tx_bytes: number }
export interface Capabilities { readonly server: { readonly version: string, readonly api_version: string }, readonly default_runtime: { readonly name: string }, readonly runtimes: readonly { readonly name: string, readonly available: boolean, readonly acceleration?: string, readonly reason?: string }[] }
export interface PluginView { readonly id: string, readonly state: string, readonly reason?: string | null }
export interface EgressLog { readonly mode: string, readonly next: number, readonly entries: readonly { readonly seq: number, readonly time: string, readonly protocol: string, readonly host: string, readonly port: number, readonly method?: string, readonly path?: string, readonly status?: number, readonly injected: readonly string[], readonly reason?: string }[] }
export interface Key { readonly id: string, readonly name: string, readonly scopes: readonly string[], readonly status: string, readonly created_at: string, readonly expires_at: string | null, readonly last_used_at: string | null }
export interface Whoami { readonly id: string, readonly name: string, readonly scopes: readonly string[], readonly expires_at: string | null }
export interface Webhook { readonly id: string, readonly url: string, readonly enabled: boolean, readonly status: string, readonly failed_attempts: number, readonly created_at: string, readonly last_delivery: { readonly delivered_at: string } | null, readonly last_error: { readonly message: string } | null }
export interface PublishedPort { readonly id: string, readonly instance_id: string, readonly protocol: string, readonly address: string, readonly host_port: number, readonly instance_port: number, readonly way: string, readonly problem: string | null, readonly created_at: string }
export interface IngressRule { readonly match: { readonly hostname: string, readonly port: number, readonly path?: string }, readonly target: { readonly instance: string, readonly port: number }, readonly tls: boolean }
export interface Ingress { readonly id: string, readonly name: string, readonly created_at: string, readonly rules: readonly IngressRule[], readonly served: boolean, readonly reason?: string }
export interface IngressLog { readonly entries: readonly { readonly time: string, readonly client: string, readonly method: string, readonly host: string, readonly path: string, readonly status: number, readonly bytes_out: number, readonly duration_ms: number }[] }
export interface AutoStandbyStatus { readonly status: string, readonly reason: string, readonly active_inbound_connections: number, readonly kept_awake_by: readonly string[], readonly idle_timeout: string | null, readonly next_standby_at: string | null, readonly hold_until: string | null }
export interface HostChecks { readonly checks: readonly { readonly subject: string, readonly verdict: 'ok' | 'warning' | 'failed', readonly found: string, readonly remedy?: string }[] }
export interface HostProcesses { readonly processes: readonly { readonly name: string, readonly plugin: string, readonly state: string, readonly pid: number | null, readonly since: string | null, readonly restarts: number | null, readonly last_end: { readonly at: string, readonly reason: string } | null, readonly memory_bytes: number | null, readonly cpu_seconds: number | null }[] }
export interface HostLogLine { readonly time: string, readonly level: string, readonly message: string, readonly fields: Readonly<Record<string, unknown>> }
export interface HostLog { readonly entries: readonly HostLogLine[] }
