CREATE TABLE `ports_migrations` (`name` varchar(191), `state` varchar(16) not null, `applied_at` bigint not null, primary key (`name`));
CREATE TABLE `ports_ports` (`id` varchar(64), `host_id` varchar(64) not null, `instance_id` varchar(64) not null, `protocol` varchar(3) not null, `address` varchar(15) not null, `host_port` integer not null, `instance_port` integer not null, `created_at` bigint not null, primary key (`id`));
CREATE INDEX `ports_instance` on `ports_ports` (`host_id`, `instance_id`);
CREATE UNIQUE INDEX `ports_place` on `ports_ports` (`host_id`, `protocol`, `host_port`, `address`);
INSERT INTO `ports_migrations` (`name`, `state`, `applied_at`) VALUES ('0001-create-ports', 'done', 0);
INSERT INTO `ports_ports` (`id`, `host_id`, `instance_id`, `protocol`, `address`, `host_port`, `instance_port`, `created_at`) VALUES ('id 0', 'host_id 0', 'instance_id 0', 'l 0', 'address 0', 1, 1, 1700000000000);
INSERT INTO `ports_ports` (`id`, `host_id`, `instance_id`, `protocol`, `address`, `host_port`, `instance_port`, `created_at`) VALUES ('id 1', 'host_id 1', 'instance_id 1', 'l 1', 'address 1', 2, 2, 1700000000001);
INSERT INTO `ports_ports` (`id`, `host_id`, `instance_id`, `protocol`, `address`, `host_port`, `instance_port`, `created_at`) VALUES ('id 2', 'host_id 2', 'instance_id 2', 'l 2', 'address 2', 3, 3, 1700000000002);
