// The server itself, and how it is reached.
import type { CommandSpec } from '../spec.ts'

export const SERVER_VIEW_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'events', summary: 'what changes on the server, as it comes', details: 'It goes on where it was when the connection is lost. With --json one event is one line.',
    options: [{ flags: '--resource <kind>', description: 'only these: instance, image, build, snapshot, volume, device, push; may be repeated', many: true }, { flags: '--id <id>', description: 'only of this id or name' }, { flags: '-l, --tag <KEY=VALUE>', description: 'only of things with this tag; may be repeated', many: true }, { flags: '--after <id>', description: 'begin after the event of this id' }],
    examples: ['berth events --resource instance', 'berth events --json --after 1763800000000000'], load: async () => await import('../commands/events.ts')
  },
  {
    name: 'webhook create', args: '<url>', summary: 'post what changes to an address; the secret of its signatures is printed once',
    options: [{ flags: '--resource <kind>', description: 'only these: instance, image, build, snapshot, volume, device, push; may be repeated', many: true }, { flags: '--id <id>', description: 'only of this id or name; may be repeated', many: true }, { flags: '-l, --tag <KEY=VALUE>', description: 'only of things with this tag; may be repeated', many: true }],
    examples: ['berth webhook create https://ci.example.com/hooks/berth --resource instance,build'], load: async () => await import('../commands/webhook-create.ts')
  },
  { name: 'webhook ls', summary: 'list webhooks, and what has become of their deliveries', examples: ['berth webhook ls'], load: async () => await import('../commands/webhook-ls.ts') },
  { name: 'webhook inspect', args: '<webhook...>', names: 'webhooks', summary: 'everything about webhooks, as JSON', examples: ['berth webhook inspect ID'], load: async () => await import('../commands/webhook-inspect.ts') },
  { name: 'webhook rm', args: '<webhook...>', names: 'webhooks', summary: 'end webhooks', examples: ['berth webhook rm ID'], asks: true, load: async () => await import('../commands/webhook-rm.ts') },
  { name: 'resources', summary: 'what the host has, and who uses it', examples: ['berth resources'], load: async () => await import('../commands/resources.ts') },
  {
    name: 'resources reclaim', args: '<size>', summary: 'take memory from guests that run, for the host, and give it back after a while',
    details: 'SIZE is what all of them together are to do without, as 512MB; 0 gives everything back at once.',
    options: [{ flags: '--hold-for <duration>', description: 'for how long (5m), at most 1h' }, { flags: '--reason <text>', description: 'for the log of the server' }, { flags: '--dry-run', description: 'say what would be asked of whom, and change nothing' }],
    examples: ['berth resources reclaim 2GB --hold-for 10m', 'berth resources reclaim --dry-run 512MB', 'berth resources reclaim 0'], load: async () => await import('../commands/resources-reclaim.ts')
  },
  { name: 'host checks', summary: 'what the server finds of its host, and what to do about it', examples: ['berth host checks'], load: async () => await import('../commands/host-checks.ts') },
  { name: 'host processes', summary: 'the processes that the server keeps running, and the VMMs of instances', examples: ['berth host processes'], load: async () => await import('../commands/host-processes.ts') },
  {
    name: 'host log', summary: 'the newest lines of the server\'s own log',
    options: [{ flags: '-n, --tail <count>', description: 'at most this many of the last ones (200)' }, { flags: '--level <level>', description: 'the least important level that is shown', values: ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] }, { flags: '--since <time>', description: 'only from this time on, as 2026-01-31T12:00:00Z; not with -f' }, { flags: '-f, --follow', description: 'and those that come, until it is interrupted' }],
    examples: ['berth host log --level warn', 'berth host log -f'], load: async () => await import('../commands/host-log.ts')
  },
  { name: 'plugins', summary: 'the parts of the server, and why one is missing', examples: ['berth plugins'], load: async () => await import('../commands/plugins.ts') },
  { name: 'doctor', summary: 'look at this host and at the server, and say what is wrong and what to do', details: 'Works without a server, too.', options: [{ flags: '--host-only', description: 'do not ask a server' }], examples: ['berth doctor'], load: async () => await import('../commands/doctor.ts') },
  { name: 'version', summary: 'the version of the command, and of the server', examples: ['berth version'], load: async () => await import('../commands/version.ts') }
]

export const CONNECTION_COMMANDS: readonly CommandSpec[] = [
  { name: 'login', args: '<url>', summary: 'try a key at a server and remember both', details: 'The key is that of --token-file, or else it is asked for, or read from standard input. It is kept in a file that only you can read.', options: [{ flags: '--name <name>', description: 'name of the context; the host when absent' }], examples: ['berth login https://berth.example.com:8080', 'berth login http://127.0.0.1:8080 < key'], load: async () => await import('../commands/login.ts') },
  { name: 'whoami', summary: 'the key that is used, and what it may do', examples: ['berth whoami'], load: async () => await import('../commands/whoami.ts') },
  { name: 'key create', args: '<name>', summary: 'make a key that can do no more than this one; it is printed once', options: [{ flags: '--scope <scope>', description: 'what it may do, as instance:write; may be repeated', many: true }, { flags: '--repository <repository>', description: 'where it may write images; may be repeated', many: true }, { flags: '--expires-in <duration>', description: 'for how long, as 30d or 12h' }], examples: ['berth key create ci --scope image:read,instance:write --expires-in 30d'], load: async () => await import('../commands/key-create.ts') },
  { name: 'key ls', summary: 'list keys, also those that have ended', examples: ['berth key ls'], load: async () => await import('../commands/key-ls.ts') },
  { name: 'key rm', args: '<key...>', names: 'keys', summary: 'end keys at once', examples: ['berth key rm ID'], asks: true, load: async () => await import('../commands/key-rm.ts') },
  { name: 'context ls', summary: 'the servers that were logged in to', examples: ['berth context ls'], load: async () => await import('../commands/context-ls.ts') },
  { name: 'context use', args: '<name>', names: 'contexts', summary: 'choose the server that is meant from now on', examples: ['berth context use prod'], load: async () => await import('../commands/context-use.ts') },
  { name: 'context rm', args: '<name...>', names: 'contexts', summary: 'forget servers and their keys', examples: ['berth context rm prod'], asks: true, load: async () => await import('../commands/context-rm.ts') },
  { name: 'completion', args: '<shell>', summary: 'print what makes a shell complete these commands', details: 'bash: source <(berth completion bash); zsh: source <(berth completion zsh); fish: berth completion fish | source', examples: ['berth completion bash > /etc/bash_completion.d/berth'], load: async () => await import('../commands/completion.ts') }
]
