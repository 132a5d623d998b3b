// The hosts of the matrix. Each is this host with something taken away, by namespaces and capabilities where that is equivalent to a container.
export interface Cell {
  readonly about: string
  /** `prepared`: packages, build and caches are there; `bare`: as git clones it */
  readonly checkout: 'prepared' | 'bare'
  /** version of Node.js, from the npm registry; absent: this host's */
  readonly node?: '22' | '24'
  /** a shell script that arranges the host and then runs its arguments, in the checkout; OTHERS is the number of a user that does not exist, HOME a folder of the cell's own */
  readonly enter?: string
  /** what is removed from the checkout before */
  readonly without?: readonly string[]
  /** owner of the checkout's files */
  readonly isOthers?: boolean
  /** settings of npm: `host`: those of this host; `none`: npm's defaults; `empty`: the same, with an empty cache */
  readonly npm?: 'host' | 'none' | 'empty'
  /** run before quickstart */
  readonly first?: { readonly name: string, readonly command: readonly string[] }
}

const DOCKER = 'chown,dac_override,fowner,fsetid,kill,setgid,setuid,setpcap,net_bind_service,net_raw,sys_chroot,mknod,audit_write,setfcap'
const AS_OTHER = 'setpriv --reuid=$OTHERS --regid=$OTHERS --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all env USER=nobody'
const WITHOUT_NETWORK = 'exec unshare --net sh -c \'ip link set lo up; exec "$@"\' sh "$@"'

/** The checkout may be in the folder that is covered. */
function withTmp (options: string): string {
  return `exec unshare --mount sh -c 'mount -t tmpfs tmpfs /mnt && mkdir /mnt/checkout && mount --bind "$PWD" /mnt/checkout && cd /mnt/checkout && mount -t tmpfs -o ${options} tmpfs /tmp && exec "$@"' sh "$@"`
}

/** Hides commands of /usr/bin from everything that runs in the cell. */
function withoutCommands (names: string): string {
  return `exec unshare --mount sh -c 'mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work && mount -t overlay -o lowerdir=/usr/bin,upperdir=/mnt/upper,workdir=/mnt/work overlay /usr/bin && rm ${names.split(' ').map((name) => `/usr/bin/${name}`).join(' ')} && umount -l /mnt && exec "$@"' sh "$@"`
}

const APT = 'apt apt-get apt-cache apt-config'

export const CELLS = {
  'as-it-is': { about: 'root, nothing is lacking', checkout: 'prepared' },
  'not-root': { about: 'a user without rights, no sudo', checkout: 'prepared', isOthers: true, enter: `exec ${AS_OTHER} "$@"` },
  'no-user-namespaces': {
    about: 'the same user, and no user namespaces',
    checkout: 'prepared',
    isOthers: true,
    // In a user namespace with all users of this one, which may not create further ones.
    enter: `unshare --user --keep-caps sh -c 'until [ -n "$(cat /proc/self/gid_map)" ]; do sleep 0.1; done; echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"' sh ${AS_OTHER} "$@" &
until [ "$(readlink /proc/$!/ns/user)" != "$(readlink /proc/self/ns/user)" ]; do sleep 0.1; done
echo 0 0 4294967295 > /proc/$!/uid_map && echo 0 0 4294967295 > /proc/$!/gid_map
wait $!`
  },
  'docker-capabilities': {
    about: 'root with the capabilities that Docker leaves',
    checkout: 'prepared',
    enter: `set=-all,+$(echo ${DOCKER} | sed 's/,/,+/g'); exec setpriv --bounding-set="$set" --inh-caps="$set" "$@"`
  },
  'no-tun': { about: 'root, no /dev/net/tun', checkout: 'prepared', enter: 'exec unshare --mount sh -c \'mount -t tmpfs tmpfs /dev/net && exec "$@"\' sh "$@"' },
  'small-tmp': { about: '/tmp has 16 MB', checkout: 'prepared', enter: withTmp('size=16m,mode=1777') },
  'read-only-tmp': { about: '/tmp is read-only', checkout: 'prepared', enter: withTmp('ro') },
  'path-with-space': { about: 'a checkout in "a check out"', checkout: 'prepared' },
  'taken-port': {
    about: 'another program listens at the port for metrics',
    checkout: 'prepared',
    enter: 'exec unshare --net sh -c \'ip link set lo up; node -e "require(\\"node:net\\").createServer().listen(9464, \\"127.0.0.1\\")" & sleep 2; exec "$@"\' sh "$@"',
    first: { name: 'npm start', command: ['sh', '-c', 'BERTH_DATA_DIR="$PWD/.cache/taken-port" exec npm --silent start'] }
  },
  'node-22': { about: 'a bare checkout, Node.js 22', checkout: 'bare', node: '22' },
  'node-24': { about: 'a bare checkout, Node.js 24', checkout: 'bare', node: '24' },
  'another-node': { about: 'a checkout that another Node.js was used in, Node.js 24', checkout: 'prepared', node: '24' },
  'no-network': { about: 'no network, caches there', checkout: 'prepared', enter: WITHOUT_NETWORK },
  'no-network-no-caches': { about: 'no network, a bare checkout, no package cached', checkout: 'bare', npm: 'empty', enter: WITHOUT_NETWORK },
  'no-apt': { about: 'no apt, tools and caches there', checkout: 'prepared', enter: withoutCommands(APT) },
  'no-apt-no-kernel': { about: 'no apt, no kernel in the cache', checkout: 'prepared', without: ['.cache'], enter: withoutCommands(APT) },
  'no-apt-no-tools': { about: 'no apt, and no skopeo and umoci', checkout: 'prepared', enter: withoutCommands(`${APT} skopeo umoci`) },
  'npm-ci': {
    about: 'a bare checkout, npm as it comes, no way to the site of Node.js',
    checkout: 'bare',
    npm: 'none',
    first: { name: 'npm ci', command: ['npm', 'ci'] }
  }
} as const satisfies Readonly<Record<string, Cell>>

export type CellName = keyof typeof CELLS

export function isCellName (name: string): name is CellName {
  return Object.hasOwn(CELLS, name)
}
