// What can go wrong for a while, for whoever judges what is answered meanwhile.

export type FaultKind = 'server' | 'worker' | 'proxy' | 'vmm' | 'bytes' | 'inodes' | 'tool' | 'slow tool' | 'database'
