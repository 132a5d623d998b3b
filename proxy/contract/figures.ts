// The proxy's figures, by name. The proxy makes them, and a server that runs it hands them on among its own.

export interface FigureKind {
  readonly kind: 'counter' | 'gauge'
  readonly help: string
  /** what its values are told apart by */
  readonly label?: 'protocol' | 'reason' | 'worker'
  /** of use to who is at the proxy itself: no server hands it on */
  readonly isInside?: true
}

export const FIGURES = {
  berth_egress_requests_total: { kind: 'counter', help: 'Lines of the log of requests, by protocol', label: 'protocol' },
  berth_egress_refusals_total: { kind: 'counter', help: 'What was refused or failed, by reason', label: 'reason' },
  berth_egress_guest_bytes_total: { kind: 'counter', help: 'Bytes of bodies that guests sent' },
  berth_egress_origin_bytes_total: { kind: 'counter', help: 'Bytes of bodies that origins sent' },
  berth_egress_injected_total: { kind: 'counter', help: 'Credentials that were put into requests' },
  berth_egress_echoes_replaced_total: { kind: 'counter', help: 'Secrets that were taken out of answers' },
  berth_egress_exchange_faults_total: { kind: 'counter', help: 'Exceptions inside of the proxy, each of which ended the request that it belonged to' },
  berth_egress_certificates_total: { kind: 'counter', help: 'Certificates that were made' },
  berth_egress_origin_connections_total: { kind: 'counter', help: 'Connections to origins' },
  berth_egress_dns_queries_total: { kind: 'counter', help: 'DNS queries of guests in mode all' },
  berth_egress_audit_dropped_total: { kind: 'counter', help: 'Entries of the log of requests that made room for later ones of their VM' },
  berth_egress_audit_lost_total: { kind: 'counter', help: 'Requests that could not be recorded' },
  berth_egress_traces_dropped_total: { kind: 'counter', help: 'Requests without a trace, since the server did not ask for them in time' },
  berth_egress_audit_bytes: { kind: 'gauge', help: 'Size of the log of requests' },
  berth_egress_vms: { kind: 'gauge', help: 'VMs that have a policy' },
  berth_egress_cut_off_vms: { kind: 'gauge', help: 'VMs without a way out because their traffic kept ending workers of the proxy' },
  berth_egress_policy_revision: { kind: 'gauge', help: 'Policy revision that is enforced; -1 before the first' },
  berth_egress_ready_certificates: { kind: 'gauge', help: 'Certificates that are kept ready' },
  berth_egress_connections: { kind: 'gauge', help: 'Open connections of guests' },
  berth_egress_requests_under_way: { kind: 'gauge', help: 'Requests that are under way' },
  berth_egress_worker_up: { kind: 'gauge', help: 'Whether a worker of the proxy takes connections: 1 or 0', label: 'worker' },
  berth_egress_worker_ends_total: { kind: 'counter', help: 'How often a worker of the proxy has ended without having been asked to', label: 'worker' },
  berth_egress_worker_waiting: { kind: 'gauge', help: 'Connections that wait for a worker of the proxy', label: 'worker' },
  berth_egress_worker_resident_bytes: { kind: 'gauge', help: 'Memory of a worker of the proxy', label: 'worker' },
  berth_egress_worker_stall_seconds: { kind: 'gauge', help: 'Longest time for which the event loop of a worker of the proxy was held up since these figures were read before', label: 'worker' },
  berth_egress_worker_cpu_seconds_total: { kind: 'counter', help: 'Processor time of a worker of the proxy', label: 'worker' },
  berth_egress_worker_pid: { kind: 'gauge', help: 'Process of a worker of the proxy', label: 'worker', isInside: true }
} as const satisfies Readonly<Record<string, FigureKind>>

export type FigureName = keyof typeof FIGURES
