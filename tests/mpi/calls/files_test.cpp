// SPDX-License-Identifier: BSD-3-Clause
// Files: in a task their calls run on spare threads; requests of MPI_File_iread and so on are
// waited for as any other. Methodology: each rank writes a block of its own by one call and reads
// it back by another.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "either_count.hpp"
#include "every_caller.hpp"

namespace imbrex::test {
namespace {

constexpr int length = 1000;
using Block = std::array<int, length>;

class Files : public EveryCaller {
 protected:
  // A file of all ranks, for one test; it goes when it is closed.
  class File {
   public:
    explicit File(const Ring& ring) : ring_(ring) {
      int id = static_cast<int>(getpid());
      MPI_Bcast(&id, 1, MPI_INT, 0, ring.comm);
      const std::string name = testing::TempDir() + "imbrex_files_" + std::to_string(id);
      EXPECT_EQ(MPI_File_open(ring.comm, name.c_str(),
                              MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                              MPI_INFO_NULL, &handle),
                MPI_SUCCESS);
    }
    ~File() {
      EXPECT_EQ(MPI_File_close(&handle), MPI_SUCCESS);
      EXPECT_EQ(handle, MPI_FILE_NULL);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    // After this call every rank can read the data that any rank has written.
    void publish() const {
      EXPECT_EQ(MPI_File_sync(handle), MPI_SUCCESS);
      MPI_Barrier(ring_.comm);
      EXPECT_EQ(MPI_File_sync(handle), MPI_SUCCESS);
    }
    // Each rank sees its own part only, from its start on.
    void view_own_part() const {
      const MPI_Offset start = MPI_Offset{ring_.rank} * MPI_Offset{sizeof(Block)};
      EXPECT_EQ(MPI_File_set_view(handle, start, MPI_INT, MPI_INT, "native", MPI_INFO_NULL),
                MPI_SUCCESS);
    }
    void rewind() const { MPI_File_seek(handle, 0, MPI_SEEK_SET); }
    void rewind_shared() const {
      MPI_Barrier(ring_.comm);
      EXPECT_EQ(MPI_File_seek_shared(handle, 0, MPI_SEEK_SET), MPI_SUCCESS);
      MPI_Barrier(ring_.comm);
    }

    MPI_File handle = MPI_FILE_NULL;

   private:
    const Ring& ring_;
  };

  [[nodiscard]] Block block_of(int rank) const {
    Block block;
    for (int i = 0; i < length; ++i) block[static_cast<std::size_t>(i)] = 10000 * rank + i;
    return block;
  }
  [[nodiscard]] Block mine() const { return block_of(ring_.rank); }

  static void expect_length(const MPI_Status& status) {
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, length);
  }

  template <class Count>
  void check_own_place() const;
  template <class Count>
  void check_offsets() const;
  template <class Count>
  void check_shared() const;
  template <class Count>
  void check_ordered() const;
  template <class Count>
  void check_split_collectives() const;
  template <class Count>
  void check_split_ordered() const;
};

template <class Count>
void Files::check_own_place() const {
  const File file(ring_);
  const Block out = mine();
  Block in{};
  MPI_Status status;
  file.view_own_part();
  EXPECT_EQ(either::File_write(file.handle, out.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  file.publish();
  file.rewind();
  EXPECT_EQ(either::File_read(file.handle, in.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  EXPECT_EQ(in, out);

  file.rewind();
  come_late();
  EXPECT_EQ(either::File_write_all(file.handle, out.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  file.publish();
  file.rewind();
  in = {};
  come_late();
  EXPECT_EQ(either::File_read_all(file.handle, in.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  EXPECT_EQ(in, out);
}

template <class Count>
void Files::check_offsets() const {
  const File file(ring_);
  const Block out = mine();
  Block in{};
  MPI_Status status;
  const auto place = MPI_Offset{ring_.rank} * MPI_Offset{sizeof(Block)};
  const auto next = MPI_Offset{ring_.next()} * MPI_Offset{sizeof(Block)};
  EXPECT_EQ(either::File_write_at(file.handle, place, out.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  file.publish();
  EXPECT_EQ(either::File_read_at(file.handle, next, in.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  EXPECT_EQ(in, block_of(ring_.next()));

  file.publish();
  come_late();
  EXPECT_EQ(
      either::File_write_at_all(file.handle, next, out.data(), Count{length}, MPI_INT, &status),
      MPI_SUCCESS);
  file.publish();
  come_late();
  EXPECT_EQ(either::File_read_at_all(file.handle, place, in.data(), Count{length}, MPI_INT,
                                     &status),
            MPI_SUCCESS);
  EXPECT_EQ(in, block_of(ring_.previous()));
}

template <class Count>
void Files::check_shared() const {
  const File file(ring_);
  const Block out = mine();
  EXPECT_EQ(either::File_write_shared(file.handle, out.data(), Count{length}, MPI_INT,
                                      MPI_STATUS_IGNORE),
            MPI_SUCCESS);
  file.publish();
  file.rewind_shared();
  // Any rank's block, but a whole one.
  Block in{};
  MPI_Status status;
  EXPECT_EQ(either::File_read_shared(file.handle, in.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  EXPECT_EQ(in, block_of(in[0] / 10000));
  MPI_Offset position = -1;
  MPI_Barrier(ring_.comm);
  EXPECT_EQ(MPI_File_get_position_shared(file.handle, &position), MPI_SUCCESS);
  EXPECT_EQ(position, MPI_Offset{ring_.size} * MPI_Offset{sizeof(Block)});
}

template <class Count>
void Files::check_ordered() const {
  const File file(ring_);
  const Block out = mine();
  Block in{};
  come_late();
  EXPECT_EQ(either::File_write_ordered(file.handle, out.data(), Count{length}, MPI_INT,
                                       MPI_STATUS_IGNORE),
            MPI_SUCCESS);
  file.publish();
  file.rewind_shared();
  MPI_Status status;
  EXPECT_EQ(either::File_read_ordered(file.handle, in.data(), Count{length}, MPI_INT, &status),
            MPI_SUCCESS);
  expect_length(status);
  EXPECT_EQ(in, out);
}

template <class Count>
void Files::check_split_collectives() const {
  const File file(ring_);
  const Block out = mine();
  Block in{};
  const auto place = MPI_Offset{ring_.rank} * MPI_Offset{sizeof(Block)};
  const auto next = MPI_Offset{ring_.next()} * MPI_Offset{sizeof(Block)};
  come_late();
  EXPECT_EQ(
      either::File_write_at_all_begin(file.handle, place, out.data(), Count{length}, MPI_INT),
      MPI_SUCCESS);
  EXPECT_EQ(MPI_File_write_at_all_end(file.handle, out.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  file.publish();
  EXPECT_EQ(either::File_read_at_all_begin(file.handle, next, in.data(), Count{length}, MPI_INT),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_File_read_at_all_end(file.handle, in.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in, block_of(ring_.next()));

  file.view_own_part();
  EXPECT_EQ(either::File_write_all_begin(file.handle, in.data(), Count{length}, MPI_INT),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_File_write_all_end(file.handle, in.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  file.publish();
  file.rewind();
  Block again{};
  EXPECT_EQ(either::File_read_all_begin(file.handle, again.data(), Count{length}, MPI_INT),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_File_read_all_end(file.handle, again.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(again, in);
}

template <class Count>
void Files::check_split_ordered() const {
  const File file(ring_);
  const Block out = mine();
  Block in{};
  come_late();
  EXPECT_EQ(either::File_write_ordered_begin(file.handle, out.data(), Count{length}, MPI_INT),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_File_write_ordered_end(file.handle, out.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  file.publish();
  file.rewind_shared();
  EXPECT_EQ(either::File_read_ordered_begin(file.handle, in.data(), Count{length}, MPI_INT),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_File_read_ordered_end(file.handle, in.data(), MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in, out);
}

#if MPI_VERSION >= 4
#define BOTH_COUNTS(check) check<int>(), check<MPI_Count>()
#else
#define BOTH_COUNTS(check) check<int>()
#endif

TEST_P(Files, each_rank_at_its_own_place) {
  call([this] { BOTH_COUNTS(check_own_place); });
}
TEST_P(Files, at_an_offset) {
  call([this] { BOTH_COUNTS(check_offsets); });
}
TEST_P(Files, the_shared_file_pointer) {
  call([this] { BOTH_COUNTS(check_shared); });
}
TEST_P(Files, in_the_order_of_ranks) {
  call([this] { BOTH_COUNTS(check_ordered); });
}
TEST_P(Files, split_collectives) {
  call([this] { BOTH_COUNTS(check_split_collectives); });
}
TEST_P(Files, split_collectives_in_the_order_of_ranks) {
  call([this] { BOTH_COUNTS(check_split_ordered); });
}

TEST_P(Files, size_and_settings) {
  call([this] {
    const File file(ring_);
    come_late();
    // The file is empty here. In other files, Open MPI's first rank writes too much and cuts the
    // file again, which another rank may see.
    EXPECT_EQ(MPI_File_preallocate(file.handle, 200), MPI_SUCCESS);
    MPI_Offset bytes = -1;
    MPI_File_get_size(file.handle, &bytes);
    EXPECT_EQ(bytes, 200);
    file.publish();
    EXPECT_EQ(MPI_File_set_size(file.handle, 100), MPI_SUCCESS);
    MPI_File_get_size(file.handle, &bytes);
    EXPECT_EQ(bytes, 100);
    EXPECT_EQ(MPI_File_set_atomicity(file.handle, 0), MPI_SUCCESS);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "access_style", "read_once");
    EXPECT_EQ(MPI_File_set_info(file.handle, info), MPI_SUCCESS);
    MPI_Info_free(&info);
  });
}

TEST_P(Files, requests) {
  call([this] {
    const File file(ring_);
    const Block out = mine();
    Block in{};
    const auto place = MPI_Offset{ring_.rank} * MPI_Offset{sizeof(Block)};
    const auto next = MPI_Offset{ring_.next()} * MPI_Offset{sizeof(Block)};
    MPI_Request request;
    MPI_Status status;
    MPI_File_iwrite_at(file.handle, place, out.data(), length, MPI_INT, &request);
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    expect_length(status);
    file.publish();
    come_late();
    MPI_File_iread_at_all(file.handle, next, in.data(), length, MPI_INT, &request);
    status = await(request);
    expect_length(status);
    EXPECT_EQ(in, block_of(ring_.next()));
  });
}

int error_class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// Codes of calls that fail: at once, at the operating system's, and for want of space.
struct Codes {
  int open;
  int read;
  int read_before_begin;
  int write;
};
Codes fail(const std::string& name) {
  Codes codes{};
  MPI_File file = MPI_FILE_NULL;
  codes.open = error_class_of(
      MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file));
  MPI_File_open(MPI_COMM_SELF, name.c_str(),
                MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  int value = 0;
  codes.read_before_begin =
      error_class_of(MPI_File_read_at(file, -1, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_File_close(&file);
  MPI_File_open(MPI_COMM_SELF, "/dev/full", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
  codes.read = error_class_of(MPI_File_read_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  codes.write = error_class_of(MPI_File_write_at(file, 0, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
  MPI_File_close(&file);
  return codes;
}

TEST_P(Files, errors_are_those_of_mpi) {
  const std::string name = testing::TempDir() + "imbrex_files_" + std::to_string(getpid());
  Codes plain{};
  on_unknown_thread([&] { plain = fail(name); });
  Codes codes{};
  call([&] { codes = fail(name); });
  EXPECT_EQ(plain.open, MPI_ERR_NO_SUCH_FILE);
  EXPECT_EQ(codes.open, plain.open);
  EXPECT_EQ(codes.read, plain.read);
  EXPECT_EQ(codes.read_before_begin, plain.read_before_begin);
  EXPECT_EQ(codes.write, plain.write);
}

EVERY_CALLER(Files);

}  // namespace
}  // namespace imbrex::test
