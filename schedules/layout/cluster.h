// A cluster: hosts of equal devices, linked within a host and, by network cards, between hosts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/analytic_costs.h"

namespace stagewright {

struct HostKind { // so many equal hosts
    int count = 1;
    int devices = 8; // of each
    DevicePreset device;
    std::string title;     // where the device is not a preset; else ""
    double memory = 0;     // bytes of a device that may be used
    double between = 25e9; // bytes per second of one network card, one way
    int cards = 8;         // of a host
};

struct Cluster {
    int devices = 8;
    int perHost = 8;
    DevicePreset device;
    std::string title;      // where the device is not a preset; else ""
    double memory = 0;      // bytes of a device that may be used
    double between = 25e9;  // bytes per second of one network card, one way
    int cards = 8;          // of a host
    bool duplex = true;     // a card sends and receives at once
    Nanos betweenDelay = 0; // latency of a message to another host
    // Where hosts differ: the figures above are then the slowest of each.
    std::vector<HostKind> kinds;

    double within() const { return device.linkBytesPerSecond; }    // of one device to the others of its host, one way
    double card() const { return duplex ? between : between / 2; } // what a card gives each way while both are used
    int hosts() const { return (devices + perHost - 1) / perHost; }
};

// "64@a100", then options: ":per-host=8", ":memory=80GB", ":within=300GB/s", ":between=25GB/s", ":cards=8". The device's
// memory counts in full. Usage errors list what there is.
Result<Cluster> parseCluster(std::string_view text);
// A cluster file {"hosts": [{"count", "devices", "device" or its figures, "memory_bytes", "cards",
// "card_bytes_per_second"}], "duplex", "between_latency_ns"}; or what 'devices --json' or 'hosts test --json' printed, of
// which one host is made: its links are its preset's. Options as above, and "hosts=8" for as many such hosts.
// Unreadable names the place in the file.
Result<Cluster> readCluster(std::string_view json, std::string_view options = {});
// One of both: a text whose part before the first colon ends in .json names a file, which is read. Errors name it.
inline constexpr std::string_view clusterForm = "N@DEVICE|FILE.json[:KEY=VALUE…]";
using FileReader = std::function<Result<std::string>(const std::string& path)>;
Result<Cluster> namedCluster(std::string_view text, const FileReader& read);
std::string toJson(const Cluster& cluster); // read back by readCluster
std::string toText(const Cluster& cluster); // in words: "64 × NVIDIA A100 80 GB SXM, 8 a host"

// A model of decoder layers, by a preset's name or "layers=96,hidden=12288,heads=96,seq=2048,vocab=50304", also with
// kv=8, ffn=28672 and experts=8; "tied" or "tied=no" behind either counts embedding and head.
Result<ModelPreset> parseModelShape(std::string_view text);

} // namespace stagewright
