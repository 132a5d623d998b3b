// The ways from outside to programs in instances.
import type { CommandSpec } from '../spec.ts'
import { TAGS, TAG_FILTER } from './common.ts'

export const PORT_COMMANDS: readonly CommandSpec[] = [
  { name: 'ports ls', args: '[instance]', names: 'instances', summary: 'the ports of the host that lead to instances, or to one', examples: ['berth ports ls', 'berth ports ls web'], load: async () => await import('../commands/ports-ls.ts') },
  {
    name: 'ports add', args: '<instance> <port...>', names: 'instances', summary: 'publish ports of an instance at the host, until they are taken away',
    details: 'A port is [[ADDRESS:]PORT:]INSTANCE_PORT[/udp], as for "run --publish": without PORT one is chosen, and without ADDRESS it is on 127.0.0.1 of the server alone. A connection wakes an instance that sleeps.',
    examples: ['berth ports add web 8080:80', 'berth ports add dns 0.0.0.0:53:53/udp'], load: async () => await import('../commands/ports-add.ts')
  },
  { name: 'ports rm', args: '<instance> <port...>', names: 'instances', summary: 'take published ports away', details: 'A port is an id, or [ADDRESS:]PORT[/udp] of the host.', examples: ['berth ports rm web 8080', 'berth ports rm dns 53/udp'], asks: true, load: async () => await import('../commands/ports-rm.ts') }
]

export const INGRESS_COMMANDS: readonly CommandSpec[] = [
  { name: 'ingress ls', summary: 'list ingresses, and why one is not served', options: [TAG_FILTER], examples: ['berth ingress ls'], load: async () => await import('../commands/ingress-ls.ts') },
  {
    name: 'ingress create', args: '<name> <rule...>', summary: 'let host names lead to programs in instances',
    details: 'A rule is HOST[:PORT][/PATH]=INSTANCE:PORT. HOST may be *.example.com, or {instance}.example.com, which the instance may be named by. Options hold for all rules.',
    options: [
      { flags: '--tls', description: 'serve them with TLS' }, { flags: '--redirect-http', description: 'and send plain HTTP there' },
      { flags: '--header-auth <HEADER=ENV>', description: 'a header that requests must have, with the value of the variable ENV of this shell' }, TAGS
    ],
    examples: ['berth ingress create shop shop.example.com=web:8080 --tls --redirect-http', 'berth ingress create site example.com=web:80 example.com/api=api:3000', 'berth ingress create previews \'{instance}.preview.example.com={instance}:3000\''],
    load: async () => await import('../commands/ingress-create.ts')
  },
  { name: 'ingress inspect', args: '<ingress...>', names: 'ingresses', summary: 'everything about ingresses, as JSON', examples: ['berth ingress inspect shop'], load: async () => await import('../commands/ingress-inspect.ts') },
  { name: 'ingress rm', args: '<ingress...>', names: 'ingresses', summary: 'delete ingresses', examples: ['berth ingress rm shop'], asks: true, load: async () => await import('../commands/ingress-rm.ts') },
  { name: 'ingress log', args: '<instance>', names: 'instances', summary: 'the requests that came to an instance by ingresses', options: [{ flags: '-n, --tail <count>', description: 'at most this many of the last ones (100)' }, { flags: '-f, --follow', description: 'and those that come, until it is interrupted' }], examples: ['berth ingress log web', 'berth ingress log -f web'], load: async () => await import('../commands/ingress-log.ts') },
  {
    name: 'ingress ca', summary: 'print the authority of the server, which vouches for hosts that no other one does', details: 'As PEM, for those who are to trust such hosts.',
    examples: ['berth ingress ca > berth.pem && curl --cacert berth.pem https://shop.example.com/'], load: async () => await import('../commands/ingress-ca.ts')
  }
]
