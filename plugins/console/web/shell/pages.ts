// All pages in their order, with the scope that each needs.
export interface PageEntry { readonly id: string, readonly title: string, readonly scope?: string }

export const PAGES: readonly PageEntry[] = [
  { id: 'instances', title: 'Instances', scope: 'instance:read' },
  { id: 'egress', title: 'Egress', scope: 'instance:read' },
  { id: 'family', title: 'Family', scope: 'instance:read' },
  { id: 'images', title: 'Images', scope: 'image:read' },
  { id: 'builds', title: 'Builds', scope: 'build:read' },
  { id: 'snapshots', title: 'Snapshots', scope: 'snapshot:read' },
  { id: 'volumes', title: 'Volumes', scope: 'volume:read' },
  { id: 'devices', title: 'Devices', scope: 'device:read' },
  { id: 'ingresses', title: 'Ingress', scope: 'ingress:read' },
  { id: 'keys', title: 'Keys', scope: 'key:read' },
  { id: 'webhooks', title: 'Webhooks', scope: 'webhook:read' },
  { id: 'events', title: 'Events' },
  // Its sides need a scope each.
  { id: 'host', title: 'Host' }
]
