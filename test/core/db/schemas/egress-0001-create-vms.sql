CREATE TABLE `egress_migrations` (`name` varchar(191), `state` varchar(16) not null, `applied_at` bigint not null, primary key (`name`));
CREATE TABLE `egress_vms` (`instance_id` varchar(64), `host_id` varchar(64) not null, `address` varchar(15) not null, `epoch` varchar(64) not null, `created_at` bigint not null, primary key (`instance_id`));
CREATE INDEX `egress_vms_host` on `egress_vms` (`host_id`);
INSERT INTO `egress_migrations` (`name`, `state`, `applied_at`) VALUES ('0001-create-vms', 'done', 0);
INSERT INTO `egress_vms` (`instance_id`, `host_id`, `address`, `epoch`, `created_at`) VALUES ('instance_id 0', 'host_id 0', 'address 0', 'epoch 0', 1700000000000);
INSERT INTO `egress_vms` (`instance_id`, `host_id`, `address`, `epoch`, `created_at`) VALUES ('instance_id 1', 'host_id 1', 'address 1', 'epoch 1', 1700000000001);
INSERT INTO `egress_vms` (`instance_id`, `host_id`, `address`, `epoch`, `created_at`) VALUES ('instance_id 2', 'host_id 2', 'address 2', 'epoch 2', 1700000000002);
