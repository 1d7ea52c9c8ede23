// A cluster: equal hosts of equal devices, linked within a host and, by network cards, between hosts.
#pragma once

#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/model/analytic_costs.h"

namespace stagewright {

struct Cluster {
    int devices = 8;
    int perHost = 8;
    DevicePreset device;
    double memory = 0;                                          // bytes of a device that may be used
    double between = 25e9;                                      // bytes per second of one network card, one way
    int cards = 8;                                              // of a host
    double within() const { return device.linkBytesPerSecond; } // of one device to the others of its host, one way
    int hosts() const { return (devices + perHost - 1) / perHost; }
};

// "64@a100", then options: ":per-host=8", ":memory=80GB", ":within=300GB/s", ":between=25GB/s", ":cards=8". The device's
// memory counts in full. Usage errors list what there is.
Result<Cluster> parseCluster(std::string_view text);
std::string toText(const Cluster& cluster); // in words: "64 × NVIDIA A100 80 GB SXM, 8 a host"

// A model of decoder layers, by a preset's name or "layers=96,hidden=12288,heads=96,seq=2048,vocab=50304".
Result<ModelPreset> parseModelShape(std::string_view text);

} // namespace stagewright
