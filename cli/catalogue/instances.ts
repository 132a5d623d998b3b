// Instances: making, watching, ending.
import type { CommandSpec, OptionSpec } from '../spec.ts'
import { COPY_ENV, TAGS, TAG_FILTER } from './common.ts'

const STATES = ['Created', 'Initializing', 'Running', 'Paused', 'Shutdown', 'Stopped', 'Standby', 'Unknown'] as const

/** Options that can also be changed later. */
const LIFE: readonly OptionSpec[] = [
  { flags: '--ttl <duration>', description: 'delete it after this time, as 1h; 0s: never' },
  { flags: '--restart <policy>', description: 'start it again when its program has ended', values: ['never', 'on-failure', 'always'] },
  { flags: '--restart-attempts <count>', description: 'how often, one after the other; without end when absent' },
  { flags: '--restart-backoff <duration>', description: 'pause before each (5s)' },
  { flags: '--auto-standby <duration>', description: 'put it to standby after so long without connections, as 10m; "off" ends that' },
  { flags: '--health-cmd <command>', description: 'a line for /bin/sh that tells by its exit code whether all is well; "none" ends the check' },
  { flags: '--health-http <PORT[/PATH]>', description: 'all is well while GET answers with 200 to 399, as 8080/ready' },
  { flags: '--health-tcp <port>', description: 'all is well while the port is open' },
  { flags: '--health-interval <duration>', description: 'pause between two checks (10s)' },
  { flags: '--health-timeout <duration>', description: 'how long one may take (2s)' },
  { flags: '--health-retries <count>', description: 'how many must fail, one after the other (3)' },
  { flags: '--health-start-period <duration>', description: 'how long a failure counts for nothing (30s)' }
]

/** What an instance is created from; `run` and `create` share it. */
const CREATE: readonly OptionSpec[] = [
  { flags: '--name <name>', description: 'name; made of the image\'s when absent' },
  { flags: '-e, --env <KEY=VALUE>', description: 'an environment variable; KEY alone takes its value from here; may be repeated', many: true },
  { flags: '--env-file <file>', description: 'lines of KEY=VALUE; may be repeated', many: true },
  { flags: '--size <size>', description: 'memory, as 512MB or 2GB' },
  { flags: '--memory <size>', description: 'the same as --size' },
  { flags: '--vcpus <count>', description: 'number of vCPUs' },
  { flags: '--overlay-size <size>', description: 'size of the writable disk' },
  { flags: '--hotplug-size <size>', description: 'memory that may be added later' },
  { flags: '--entrypoint <program>', description: 'in place of the image\'s; may be repeated for its arguments', many: true },
  { flags: '-p, --publish <[[ADDR:]PORT:]PORT[/udp]>', description: 'a port of the host that leads to the instance, and wakes it; may be repeated', many: true },
  { flags: '-v, --volume <ID:PATH[:ro[:overlay=SIZE]]>', description: 'a volume; may be repeated', many: true },
  { flags: '--device <id>', description: 'a PCI device; may be repeated', many: true },
  { flags: '--no-network', description: 'no network' },
  { flags: '--egress <mode>', description: 'send what goes out through the egress proxy', values: ['all', 'http_https_only'] },
  { flags: '--credential <NAME=ENV:HOST[,HOST]:HEADER[:FORMAT]>', description: 'the value of the variable ENV of this shell goes into HEADER of requests to HOST; the VM sees mock-NAME; may be repeated', many: true },
  { flags: '--bandwidth-down <rate>', description: 'limit of what comes in, as 10MB/s' },
  { flags: '--bandwidth-up <rate>', description: 'limit of what goes out' },
  { flags: '--disk-io <rate>', description: 'limit of the disk' },
  { flags: '--hypervisor <name>', description: 'the VMM' },
  ...LIFE,
  { flags: '--skip-kernel-headers', description: 'boot without kernel headers' },
  { flags: '--skip-guest-agent', description: 'no exec, cp and stat' },
  TAGS
]

const lists = { names: 'instances' } as const

export const INSTANCE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'run', args: '<image> [command...]', passThrough: true, names: 'images',
    summary: 'make an instance of an image and follow its output until it ends',
    details: 'The image is pulled if it is not there. The exit code is the program\'s. With -it the command runs on a terminal in the VM instead, and the instance stops when it ends.',
    options: [
      { flags: '-d, --detach', description: 'print the id and leave it running' },
      { flags: '--rm', description: 'delete the instance at the end' },
      { flags: '-i, --interactive', description: 'pass standard input' },
      { flags: '-t, --tty', description: 'with a terminal' },
      ...CREATE
    ],
    examples: ['berth run --rm docker.io/library/alpine echo hello', 'berth run -d --name web --size 512MB docker.io/library/nginx', 'berth run --rm -it docker.io/library/debian bash'],
    load: async () => await import('../commands/run.ts')
  },
  {
    name: 'create', args: '<image> [command...]', passThrough: true, names: 'images',
    summary: 'make an instance and print its id',
    options: CREATE, examples: ['berth create --name web docker.io/library/nginx'],
    load: async () => await import('../commands/create.ts')
  },
  {
    name: 'ps', summary: 'list instances', details: 'Those that have a VM or are in standby; -a shows the stopped ones, too.',
    options: [{ flags: '-a, --all', description: 'also stopped ones' }, { flags: '--state <state>', description: 'only those in this state', values: STATES }, TAG_FILTER],
    examples: ['berth ps', 'berth ps -a --tag team=web', 'berth ps -q --state Running'],
    load: async () => await import('../commands/ps.ts')
  },
  { name: 'inspect', args: '<instance...>', ...lists, summary: 'everything about instances, as JSON', options: [{ flags: '--show-env', description: 'with the values of variables' }], examples: ['berth inspect web', 'berth inspect web --format \'{{network.ip}}\''], load: async () => await import('../commands/inspect.ts') },
  {
    name: 'logs', args: '<instance>', ...lists, summary: 'the output of the program, or of the VMM',
    options: [{ flags: '-f, --follow', description: 'go on until the instance stops' }, { flags: '-n, --tail <lines>', description: 'at most this many of the last lines (100)' }, { flags: '-s, --source <source>', description: 'app: the program; vmm: kernel and VMM; berth: what the server did', values: ['app', 'vmm', 'berth'] }],
    examples: ['berth logs -f web', 'berth logs --source vmm --tail 20 web'], load: async () => await import('../commands/logs.ts')
  },
  {
    name: 'exec', args: '<instance> [command...]', passThrough: true, ...lists, summary: 'run a command in an instance; its exit code is this one\'s',
    details: 'The command ends when this one does. On a terminal, Ctrl-P Ctrl-Q leaves. A wrong command has 126 or 127, a fault of Berth 125.',
    options: [
      { flags: '-i, --interactive', description: 'pass standard input' }, { flags: '-t, --tty', description: 'with a terminal' },
      { flags: '-e, --env <KEY=VALUE>', description: 'an environment variable; may be repeated', many: true }, { flags: '-w, --cwd <path>', description: 'working folder' },
      { flags: '-u, --user <user>', description: 'user in the VM' }, { flags: '--wait <duration>', description: 'how long to wait for an instance that is coming up' }
    ],
    examples: ['berth exec web cat /etc/os-release', 'berth exec -it web sh', 'echo hello | berth exec -i web sh -c "cat > /tmp/x"'], load: async () => await import('../commands/exec.ts')
  },
  {
    name: 'cp', args: '<source> <target>', ...lists, summary: 'copy files and folders into an instance, or out of it',
    details: 'One of both is INSTANCE:PATH. "-" is a tar archive on standard input or output. A folder that exists gets what is copied inside.',
    options: [{ flags: '-L, --follow-links', description: 'copy what symbolic links point to; out of an instance, what the named path itself points to' }],
    examples: ['berth cp ./site web:/srv', 'berth cp web:/var/log .', 'berth cp web:/etc - | tar t'], load: async () => await import('../commands/cp.ts')
  },
  {
    name: 'port-forward', args: '<instance> <ports...>', ...lists, summary: 'ports of this host that lead into an instance, as long as the command runs',
    details: 'Ports are [ADDRESS:]LOCAL:REMOTE; without LOCAL any free one, and without ADDRESS on 127.0.0.1 alone. It needs neither a published port nor a network of the instance.',
    examples: ['berth port-forward web 8080:80', 'berth port-forward db :5432'], load: async () => await import('../commands/port-forward.ts')
  },
  { name: 'stop', args: '<instance...>', ...lists, summary: 'end instances; their disks stay', examples: ['berth stop web'], load: async () => await import('../commands/stop.ts') },
  { name: 'start', args: '<instance...>', ...lists, summary: 'start stopped instances', options: [{ flags: '--entrypoint <program>', description: 'from now on, in place of the one before; may be repeated', many: true }, { flags: '--cmd <argument>', description: 'likewise the arguments', many: true }], examples: ['berth start web'], load: async () => await import('../commands/start.ts') },
  { name: 'rm', args: '[instance...]', ...lists, summary: 'delete instances with their disks', options: [{ flags: '-f, --force', description: 'without a moment for the program to end; and without asking' }, { flags: '-a, --all', description: 'all of them' }], examples: ['berth rm web', 'berth rm -f $(berth ps -q)'], asks: true, load: async () => await import('../commands/rm.ts') },
  {
    name: 'wait', args: '<instance...>', ...lists, summary: 'wait until instances are in a state; the exit code is 124 if that takes too long',
    options: [{ flags: '--state <state>', description: 'the state (Stopped)', values: STATES }], examples: ['berth wait --state Running --timeout 2m web'], load: async () => await import('../commands/wait.ts')
  },
  { name: 'stats', args: '[instance...]', ...lists, summary: 'what instances use, live on a terminal', options: [{ flags: '--no-stream', description: 'once' }], examples: ['berth stats', 'berth stats --no-stream --json web'], load: async () => await import('../commands/stats.ts') },
  { name: 'standby', args: '<instance...>', ...lists, summary: 'put running instances to sleep, their memory on disk', options: [{ flags: '--compression <algorithm>', description: 'compress the memory afterwards', values: ['zstd', 'lz4', 'none'] }, { flags: '--compression-level <level>', description: 'zstd 1 to 19, lz4 0 to 9' }, { flags: '--compression-delay <duration>', description: 'how long to wait with that' }], examples: ['berth standby web'], load: async () => await import('../commands/standby.ts') },
  { name: 'restore', args: '<instance...>', ...lists, summary: 'wake instances that are in standby', details: 'With a folder (a path with a slash) it is the server\'s own command: it brings back a backup.', examples: ['berth restore web', 'berth restore /backup/monday'], load: async () => await import('../commands/restore.ts') },
  { name: 'auto-standby status', args: '<instance>', ...lists, summary: 'whether and when an instance goes to standby by itself, and what keeps it awake', examples: ['berth auto-standby status web', 'berth auto-standby status web --format \'{{next_standby_at}}\''], load: async () => await import('../commands/auto-standby-status.ts') },
  { name: 'auto-standby hold', args: '<instance...>', ...lists, summary: 'keep instances awake for as long as their idle timeout, counted from now', examples: ['berth auto-standby hold web'], load: async () => await import('../commands/auto-standby-hold.ts') },
  { name: 'fork', args: '<instance> <name>', ...lists, summary: 'make a second instance out of one, with its memory if it has one', options: [{ flags: '--from-running', description: 'also of one that runs, which pauses for a moment' }, { flags: '--target-state <state>', description: 'in which state the new one is left', values: ['Stopped', 'Standby', 'Running'] }, ...COPY_ENV], examples: ['berth fork --from-running web twin'], load: async () => await import('../commands/fork.ts') },
  {
    name: 'update', args: '<instance>', ...lists, summary: 'change what can be changed of an instance: its expiry, restarts, health check, and values of credentials',
    options: [{ flags: '-e, --env <KEY=VALUE>', description: 'another value of a variable that a credential takes its value from; KEY alone takes it from here; may be repeated', many: true }, { flags: '--env-file <file>', description: 'lines of KEY=VALUE; may be repeated', many: true }, ...LIFE],
    examples: ['berth update web --ttl 2h', 'API_KEY=… berth update agent -e API_KEY', 'berth update web --restart on-failure --health-cmd "wget -qO- localhost"'], load: async () => await import('../commands/update.ts')
  },
  { name: 'egress', args: '<instance>', ...lists, summary: 'what an instance sent out: each request, with the credential that went in or why it was refused', options: [{ flags: '-f, --follow', description: 'go on' }, { flags: '-n, --tail <count>', description: 'at most this many of the last ones (100)' }], examples: ['berth egress -f agent'], load: async () => await import('../commands/egress.ts') }
]
