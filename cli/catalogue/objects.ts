// Everything besides instances: images, builds, snapshots, volumes, devices.
import type { CommandSpec } from '../spec.ts'
import { COPY_ENV, TAGS, TAG_FILTER } from './common.ts'

export const IMAGE_COMMANDS: readonly CommandSpec[] = [
  { name: 'pull', args: '<image...>', summary: 'pull images and wait until they are ready', options: [TAGS, { flags: '--detach', description: 'do not wait' }], examples: ['berth pull docker.io/library/alpine:3.20'], load: async () => await import('../commands/pull.ts') },
  { name: 'image pull', args: '<image...>', summary: 'the same as pull', options: [TAGS, { flags: '--detach', description: 'do not wait' }], examples: ['berth image pull docker.io/library/alpine:3.20'], load: async () => await import('../commands/pull.ts') },
  { name: 'image ls', summary: 'list images', options: [TAG_FILTER], examples: ['berth image ls'], load: async () => await import('../commands/image-ls.ts') },
  { name: 'image inspect', args: '<image...>', names: 'images', summary: 'everything about images, as JSON', examples: ['berth image inspect alpine'], load: async () => await import('../commands/image-inspect.ts') },
  { name: 'image rm', args: '<image...>', names: 'images', summary: 'delete images', examples: ['berth image rm alpine'], asks: true, load: async () => await import('../commands/image-rm.ts') },
  { name: 'image tag', args: '<image> <name>', names: 'images', summary: 'give an image a second name', examples: ['berth image tag alpine localhost/base:v1'], load: async () => await import('../commands/image-tag.ts') },
  {
    name: 'build', args: '[context]', summary: 'build an image from a Dockerfile and its folder, in a VM',
    details: 'The folder is sent without what .dockerignore names. Ctrl-C cancels the build.',
    options: [
      { flags: '-t, --image-name <name>', description: 'name of the image' }, { flags: '-f, --file <dockerfile>', description: 'the Dockerfile, below the folder or elsewhere' },
      { flags: '--build-arg <KEY=VALUE>', description: 'for ARG; may be repeated', many: true }, { flags: '--target <stage>', description: 'build up to this stage' }, { flags: '--no-cache', description: 'use no layer of before' },
      { flags: '--secret <id>', description: 'a secret of the server for RUN --mount=type=secret; may be repeated', many: true }, { flags: '--builder <id>', description: 'the builder whose disk is used' },
      { flags: '--cache-scope <scope>', description: 'share layers with builds of the same scope' }, { flags: '--network <mode>', description: 'what the steps may reach', values: ['isolated', 'egress'] },
      { flags: '--egress <mode>', description: 'send what the steps send through the egress proxy', values: ['all', 'http_https_only'] },
      { flags: '--vcpus <count>', description: 'vCPUs of the VM' }, { flags: '--memory <MiB>', description: 'memory of the VM' }, { flags: '--build-timeout <seconds>', description: 'how long it may take' }, { flags: '-d, --detach', description: 'print the id and leave it running' }, TAGS
    ],
    examples: ['berth build -t hello .', 'berth build -f docker/Dockerfile --build-arg VERSION=2 -t app:v2 .'], load: async () => await import('../commands/build.ts')
  },
  { name: 'builds ls', summary: 'list builds', options: [TAG_FILTER], examples: ['berth builds ls'], load: async () => await import('../commands/builds-ls.ts') },
  { name: 'builds logs', args: '<build>', names: 'builds', summary: 'the log of a build', options: [{ flags: '-f, --follow', description: 'until it is over' }], examples: ['berth builds logs -f ID'], load: async () => await import('../commands/builds-logs.ts') },
  { name: 'builds cancel', args: '<build...>', names: 'builds', summary: 'cancel builds', examples: ['berth builds cancel ID'], load: async () => await import('../commands/builds-cancel.ts') },
  {
    name: 'push', args: '<image> <target>', names: 'images', summary: 'push an image to a registry and wait until it is there',
    options: [{ flags: '--insecure', description: 'plain HTTP, or an unknown certificate' }, { flags: '--username <name>', description: 'log-in at the target; the password comes from standard input' }, { flags: '--password-stdin', description: 'read the password from standard input' }, { flags: '-d, --detach', description: 'print the id and do not wait' }],
    examples: ['berth push localhost/hello registry.example.com/hello:v1'], load: async () => await import('../commands/push.ts')
  }
]

export const SNAPSHOT_COMMANDS: readonly CommandSpec[] = [
  { name: 'snapshot create', args: '<instance>', names: 'instances', summary: 'keep an instance as it is now', options: [{ flags: '--name <name>', description: 'name of the snapshot' }, { flags: '--kind <kind>', description: 'Standby: with memory; Stopped: the disk. After the instance\'s state when absent', values: ['Standby', 'Stopped'] }, TAGS], examples: ['berth snapshot create web --name before'], load: async () => await import('../commands/snapshot-create.ts') },
  { name: 'snapshot ls', summary: 'list snapshots', options: [{ flags: '--instance <instance>', description: 'only those of this instance' }, { flags: '--name <name>', description: 'only those of this name' }, TAG_FILTER], examples: ['berth snapshot ls --instance web'], load: async () => await import('../commands/snapshot-ls.ts') },
  { name: 'snapshot inspect', args: '<snapshot...>', names: 'snapshots', summary: 'everything about snapshots, as JSON', examples: ['berth snapshot inspect ID'], load: async () => await import('../commands/snapshot-inspect.ts') },
  { name: 'snapshot restore', args: '<instance> <snapshot>', names: 'instances', summary: 'put an instance back to a snapshot of its own', options: [{ flags: '--target-state <state>', description: 'in which state it is left', values: ['Stopped', 'Standby', 'Running'] }], examples: ['berth snapshot restore web ID'], asks: true, load: async () => await import('../commands/snapshot-restore.ts') },
  { name: 'snapshot fork', args: '<snapshot> <name>', names: 'snapshots', summary: 'make an instance of a snapshot', options: [{ flags: '--target-state <state>', description: 'in which state it is left', values: ['Stopped', 'Standby', 'Running'] }, { flags: '--target-hypervisor <name>', description: 'of a Stopped snapshot, another VMM' }, ...COPY_ENV], examples: ['berth snapshot fork ID twin'], load: async () => await import('../commands/snapshot-fork.ts') },
  { name: 'snapshot rm', args: '<snapshot...>', names: 'snapshots', summary: 'delete snapshots', examples: ['berth snapshot rm ID'], asks: true, load: async () => await import('../commands/snapshot-rm.ts') },
  { name: 'snapshot schedule set', args: '<instance>', names: 'instances', summary: 'take snapshots of an instance regularly', options: [{ flags: '--interval <duration>', description: 'how often, as 1h' }, { flags: '--max-count <count>', description: 'how many are kept' }, { flags: '--max-age <duration>', description: 'for how long' }, { flags: '--name-prefix <prefix>', description: 'what their names begin with' }], examples: ['berth snapshot schedule set web --interval 1h --max-count 24'], load: async () => await import('../commands/schedule-set.ts') },
  { name: 'snapshot schedule get', args: '<instance>', names: 'instances', summary: 'the schedule of an instance', examples: ['berth snapshot schedule get web'], load: async () => await import('../commands/schedule-get.ts') },
  { name: 'snapshot schedule rm', args: '<instance>', names: 'instances', summary: 'end the schedule of an instance', examples: ['berth snapshot schedule rm web'], asks: true, load: async () => await import('../commands/schedule-rm.ts') }
]

export const STORAGE_COMMANDS: readonly CommandSpec[] = [
  { name: 'volume create', args: '<name>', summary: 'make a volume, empty or out of a tar archive', options: [{ flags: '--size <GB>', description: 'size in GB' }, { flags: '--from-archive <file>', description: 'a .tar.gz, "-" for standard input' }, { flags: '--id <id>', description: 'an id of your own' }, TAGS], examples: ['berth volume create data --size 10', 'tar cz . | berth volume create site --size 1 --from-archive -'], load: async () => await import('../commands/volume-create.ts') },
  { name: 'volume ls', summary: 'list volumes', options: [TAG_FILTER], examples: ['berth volume ls'], load: async () => await import('../commands/volume-ls.ts') },
  { name: 'volume inspect', args: '<volume...>', names: 'volumes', summary: 'everything about volumes, as JSON', examples: ['berth volume inspect data'], load: async () => await import('../commands/volume-inspect.ts') },
  { name: 'volume rm', args: '<volume...>', names: 'volumes', summary: 'delete volumes with what is in them', examples: ['berth volume rm data'], asks: true, load: async () => await import('../commands/volume-rm.ts') },
  { name: 'volume attach', args: '<volume> <instance> <path>', names: 'volumes', summary: 'attach a volume to an instance', options: [{ flags: '--readonly', description: 'only for reading' }], examples: ['berth volume attach data web /srv'], load: async () => await import('../commands/volume-attach.ts') },
  { name: 'volume detach', args: '<volume> <instance>', names: 'volumes', summary: 'detach a volume from an instance', examples: ['berth volume detach data web'], load: async () => await import('../commands/volume-detach.ts') },
  { name: 'device available', summary: 'list the PCI devices of the host that could be passed through', examples: ['berth device available'], load: async () => await import('../commands/device-available.ts') },
  { name: 'device register', args: '<pci-address>', summary: 'make a PCI device usable by instances', options: [{ flags: '--name <name>', description: 'its name' }, TAGS], examples: ['berth device register 0000:01:00.0 --name gpu'], load: async () => await import('../commands/device-register.ts') },
  { name: 'device ls', summary: 'list registered devices', options: [TAG_FILTER], examples: ['berth device ls'], load: async () => await import('../commands/device-ls.ts') },
  { name: 'device rm', args: '<device...>', names: 'devices', summary: 'unregister devices', examples: ['berth device rm gpu'], asks: true, load: async () => await import('../commands/device-rm.ts') }
]
