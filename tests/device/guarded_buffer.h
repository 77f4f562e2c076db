// Device memory that ends where its mapping ends: a kernel that reads the byte behind it fails with
// an illegal address, whatever the allocator keeps beside other memory.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#include "device/device.h"

namespace pagoda::gpu_test {

class GuardedBuffer {
 public:
  // Holds a copy of `values`, whose bytes are a multiple of 16.
  template <class T>
  GuardedBuffer(device::Stream& stream, const std::vector<T>& values) {
    const std::size_t bytes = values.size() * sizeof(T);
    map(bytes);
    data_ = reinterpret_cast<std::byte*>(base_ + mapped_) - bytes;
    EXPECT_TRUE(
        stream.copy_to_device(data_, reinterpret_cast<const std::byte*>(values.data()), bytes)
            .ok());
    EXPECT_TRUE(stream.wait().ok());
  }
  ~GuardedBuffer() {
    driver<decltype(&cuMemUnmap)>("cuMemUnmap")(base_, mapped_);
    driver<decltype(&cuMemRelease)>("cuMemRelease")(memory_);
    driver<decltype(&cuMemAddressFree)>("cuMemAddressFree")(base_, reserved_);
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  // The driver's functions are found by name: nothing links against its library.
  template <class Function>
  static Function driver(const char* name) {
    constexpr unsigned kVersion = 12000;
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t code =
        cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
    if (code != cudaSuccess || found == nullptr) {
      ADD_FAILURE() << "the driver has no " << name;
      std::abort();
    }
    return reinterpret_cast<Function>(found);
  }

  // Reserves one granule of addresses more than it maps.
  void map(std::size_t bytes) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    std::size_t granule = 0;
    EXPECT_EQ(driver<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity")(
                  &granule, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
              CUDA_SUCCESS);
    mapped_ = (bytes + granule - 1) / granule * granule;
    reserved_ = mapped_ + granule;
    EXPECT_EQ(
        driver<decltype(&cuMemAddressReserve)>("cuMemAddressReserve")(&base_, reserved_, 0, 0, 0),
        CUDA_SUCCESS);
    EXPECT_EQ(driver<decltype(&cuMemCreate)>("cuMemCreate")(&memory_, mapped_, &properties, 0),
              CUDA_SUCCESS);
    EXPECT_EQ(driver<decltype(&cuMemMap)>("cuMemMap")(base_, mapped_, 0, memory_, 0), CUDA_SUCCESS);
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT_EQ(driver<decltype(&cuMemSetAccess)>("cuMemSetAccess")(base_, mapped_, &access, 1),
              CUDA_SUCCESS);
  }

  CUdeviceptr base_ = 0;
  std::size_t mapped_ = 0;
  std::size_t reserved_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace pagoda::gpu_test
