// The groups of the document, in the order in which people read them.

export const DOCUMENT_TAGS = [
  { name: 'instances', description: 'Virtual machines: their life, logs, commands in them and files in and out of them' },
  { name: 'ports', description: 'Ports of the host that lead to instances' },
  { name: 'snapshots', description: 'States of instances that are kept, and schedules that keep them' },
  { name: 'images', description: 'OCI images that instances are made of' },
  { name: 'builds', description: 'Images that are built from a source' },
  { name: 'builders', description: 'Cache disks that builds share' },
  { name: 'volumes', description: 'Disks that outlive instances' },
  { name: 'devices', description: 'PCI devices of the host that instances are given' },
  { name: 'ingresses', description: 'Names and paths that lead to programs in instances' },
  { name: 'pushes', description: 'Images on their way to other registries' },
  { name: 'events', description: 'What changes, as a stream' },
  { name: 'webhooks', description: 'What changes, posted to other servers' },
  { name: 'resources', description: 'What the host has, and who has it' },
  { name: 'keys', description: 'Who may use the API, for what, where and until when' },
  { name: 'server', description: 'This server and what it can do' }
] as const
