#include "widgets/library/schedule_browser.h"

#include <algorithm>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

#include "widgets/background.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/literals.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/style.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr int nameRole = Qt::UserRole;

QLabel* wrapped(const char* role, QWidget* parent)
{
    auto* label = makeLabel({}, role, parent, true);
    label->setWordWrap(true);
    return label;
}

} // namespace

ScheduleBrowser::ScheduleBrowser(const Theme& theme, QWidget* parent) : QDialog(parent), m_theme(theme)
{
    setObjectName(u"newSchedule"_s);
    setWindowTitle(u"New schedule from the library"_s);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(20, 18, 20, 16);
    outer->setSpacing(12);
    auto* columns = new QHBoxLayout;
    columns->setSpacing(20);
    outer->addLayout(columns, 1);

    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    columns->addLayout(left);
    m_search = new QLineEdit(this);
    m_search->setObjectName(u"search"_s);
    m_search->setPlaceholderText(u"Search, also by other tools' names"_s);
    m_search->setAccessibleName(u"Search"_s);
    m_search->setClearButtonEnabled(true);
    m_search->setFixedWidth(262);
    m_search->installEventFilter(this);
    left->addWidget(m_search);
    m_list = new QListWidget(this);
    m_list->setObjectName(u"boxed"_s);
    m_list->setAccessibleName(u"Schedules"_s);
    m_list->setFixedWidth(262);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setTextElideMode(Qt::ElideRight);
    left->addWidget(m_list, 1);
    m_page = new QScrollArea(this);
    m_page->setWidgetResizable(true);
    m_page->setFrameShape(QFrame::NoFrame);
    m_page->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_page->setFocusPolicy(Qt::NoFocus);
    m_page->setWidget(buildPage());
    columns->addWidget(m_page, 1);

    auto* bottom = new QHBoxLayout;
    bottom->setSpacing(8);
    m_fault = wrapped("worse", this);
    m_fault->setObjectName(u"fault"_s);
    m_nearest = new QPushButton(this);
    m_nearest->setObjectName(u"nearest"_s);
    m_nearest->setToolTip(u"The nearest shape that this schedule supports"_s);
    auto* cancel = new QPushButton(u"Cancel"_s, this);
    m_block = new QPushButton(u"Building block…"_s, this);
    m_block->setToolTip(u"The repeated block and its interval; its offsets can be edited"_s);
    m_train = new QPushButton(u"Train it…"_s, this);
    m_train->setToolTip(u"Opens the record dialog with this schedule and shape"_s);
    m_create = new QPushButton(u"Create"_s, this);
    m_create->setObjectName(u"primary"_s);
    m_create->setToolTip(u"Opens it as a simulated run"_s);
    for (QPushButton* button : {m_nearest, cancel, m_block, m_train}) button->setAutoDefault(false);
    m_create->setDefault(true);
    bottom->addWidget(m_fault, 1);
    bottom->addWidget(m_nearest);
    bottom->addWidget(cancel);
    bottom->addWidget(m_block);
    bottom->addWidget(m_train);
    bottom->addWidget(m_create);
    outer->addLayout(bottom);

    m_wait.setSingleShot(true);
    m_wait.setInterval(60);
    connect(&m_wait, &QTimer::timeout, this, &ScheduleBrowser::ask);
    connect(m_search, &QLineEdit::textChanged, this, &ScheduleBrowser::filter);
    connect(m_list, &QListWidget::currentItemChanged, this, &ScheduleBrowser::showPage);
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_create, &QPushButton::clicked, this, [this] {
        emit createAsked(name(), shape(), costs());
        accept();
    });
    connect(m_train, &QPushButton::clicked, this, [this] {
        emit trainAsked(name(), shape());
        accept();
    });
    connect(m_block, &QPushButton::clicked, this, [this] {
        emit blockAsked(name(), shape());
        accept();
    });
    connect(m_nearest, &QPushButton::clicked, this, [this] {
        if (m_preview.nearest) setShape(*m_preview.nearest);
    });
    m_nearest->hide();
    m_block->hide();
    fillList();
    choose(u"1f1b"_s);
    // it covers the window
    const QSize most = parentWidget() != nullptr ? parentWidget()->window()->size() - QSize(40, 20) : QSize(1180, 800);
    resize(QSize(1180, 800).boundedTo(most));
    m_search->setFocus();
}

ScheduleBrowser::~ScheduleBrowser() = default;

QWidget* ScheduleBrowser::buildPage()
{
    auto* page = new QWidget(this);
    page->setObjectName(u"panelBody"_s);
    auto* layout = new QVBoxLayout(page);
    layout->setContentsMargins(18, 16, 18, 12);
    layout->setSpacing(8);
    m_title = makeLabel({}, "bigtitle", page, true);
    m_title->setWordWrap(true);
    m_summary = wrapped("value", page);
    layout->addWidget(m_title);
    layout->addWidget(m_summary);
    layout->addSpacing(4);

    m_state = new ViewState(this);
    m_view = new TimelineView(m_state, page);
    m_view->setObjectName(u"preview"_s);
    m_view->setAccessibleName(u"Timeline of the schedule"_s);
    m_view->setTitle(u"Preview"_s);
    m_view->setTheme(m_theme);
    m_legend = new Legend(page);
    m_legend->setTheme(m_theme);
    m_drawn = wrapped("faint", page);
    m_drawn->setText(u"Simulating…"_s);
    layout->addWidget(m_view);
    layout->addWidget(m_legend);
    layout->addWidget(m_drawn);

    auto* halves = new QHBoxLayout;
    halves->setSpacing(28);
    auto* form = new QGridLayout;
    form->setHorizontalSpacing(10);
    form->setVerticalSpacing(7);
    form->setColumnStretch(1, 1);
    form->setColumnStretch(3, 1);
    int row = 0;
    const auto place = [&](int column, const QString& title, QWidget* field, const QString& tooltip) {
        auto* label = makeLabel(title, "secondary", page);
        label->setBuddy(field);
        for (QWidget* widget : {static_cast<QWidget*>(label), field}) widget->setToolTip(tooltip);
        field->setAccessibleName(title);
        form->addWidget(label, row, column);
        form->addWidget(field, row, column + 1);
    };
    const auto whole = [&](const char* key, int low, int high, int value) {
        auto* box = new QSpinBox(page);
        box->setObjectName(QString::fromLatin1(key));
        box->setRange(low, high);
        box->setValue(value);
        connect(box, &QSpinBox::valueChanged, this, [this] {
            m_wait.start();
            m_pending = true;
        });
        return box;
    };
    const auto real = [&](const char* key, double value) {
        auto* box = new QDoubleSpinBox(page);
        box->setObjectName(QString::fromLatin1(key));
        box->setRange(0, 1000);
        box->setDecimals(2);
        box->setSingleStep(0.25);
        box->setButtonSymbols(QAbstractSpinBox::NoButtons);
        box->setValue(value);
        connect(box, &QDoubleSpinBox::valueChanged, this, [this] {
            m_wait.start();
            m_pending = true;
        });
        return box;
    };
    form->addWidget(makeLabel(u"Shape"_s, "title", page), row, 0, 1, 2);
    form->addWidget(makeLabel(u"Costs, in units"_s, "title", page), row++, 2, 1, 2);
    m_ranks = whole("ranks", 1, 2048, 4);
    m_microbatches = whole("microbatches", 1, 4096, 8);
    m_chunks = whole("chunks", 0, 64, 0);
    m_chunks->setSpecialValueText(u"schedule default"_s);
    m_forward = real("forward", 1);
    m_forward->setMinimum(0.01);
    m_input = real("inputGrad", 1);
    m_weight = real("weightGrad", 1);
    m_latency = real("latency", 0);
    place(0, u"Ranks"_s, m_ranks, u"Devices, each with a part of the model."_s);
    place(2, u"Forward F"_s, m_forward, u"Time of F for one microbatch over a rank's share of the model."_s);
    ++row;
    place(0, u"Microbatches"_s, m_microbatches, u"Parts of a batch that run one after another."_s);
    place(2, u"Input gradient I"_s, m_input,
          u"Time of I; zero-bubble papers call it B. A full backward takes I + W."_s);
    ++row;
    place(0, u"Stages per rank"_s, m_chunks, u"Chunks per rank; schedules with a fixed number ignore it."_s);
    place(2, u"Weight gradient W"_s, m_weight, u"Time of W."_s);
    ++row;
    place(2, u"Link latency"_s, m_latency, u"Time of a message between ranks."_s);
    m_parameterBox = new QWidget(page);
    m_parameters = new QGridLayout(m_parameterBox);
    m_parameters->setContentsMargins(0, 8, 0, 0);
    m_parameters->setHorizontalSpacing(10);
    m_parameters->setVerticalSpacing(7);
    m_parameters->setColumnStretch(2, 1);
    auto* fields = new QVBoxLayout;
    fields->addLayout(form);
    fields->addWidget(m_parameterBox);
    fields->addStretch(1);
    halves->addLayout(fields, 5);
    m_figures = new PanelSection(u"Figures"_s, page);
    m_figures->setRuled(false);
    m_figures->setTheme(m_theme);
    auto* right = new QVBoxLayout;
    right->addWidget(m_figures);
    right->addStretch(1);
    halves->addLayout(right, 4);
    layout->addLayout(halves);

    const auto text = [&](const QString& title, const char* role) {
        layout->addWidget(makeLabel(title, "title", page));
        auto* label = wrapped(role, page);
        layout->addWidget(label);
        return label;
    };
    m_constraints = text(u"Constraints"_s, "value");
    m_formulas = text(u"Formulas"_s, "code");
    m_paper = text(u"Paper"_s, "value");
    m_aliases = text(u"Other names"_s, "secondary");
    layout->addStretch(1);
    return page;
}

void ScheduleBrowser::fillList()
{
    std::array<std::vector<const ScheduleInfo*>, scheduleGroupCount> groups;
    for (const ScheduleInfo& info : allSchedules()) groups[static_cast<std::size_t>(groupOf(info))].push_back(&info);
    for (std::size_t g = 0; g < groups.size(); ++g) {
        if (groups[g].empty()) continue;
        auto* head = new QListWidgetItem(titleOf(static_cast<ScheduleGroup>(g)), m_list);
        head->setFlags(Qt::NoItemFlags);
        QFont font = fontOf(FontRole::Small);
        font.setWeight(QFont::DemiBold);
        head->setFont(font);
        for (const ScheduleInfo* info : groups[g]) {
            auto* item = new QListWidgetItem(words(info->title).section(" ("_L1, 0, 0), m_list);
            item->setData(nameRole, words(info->name));
            item->setToolTip(words(info->title) + u'\n' + words(info->summary));
        }
    }
}

void ScheduleBrowser::filter()
{
    QListWidgetItem* head = nullptr;
    QListWidgetItem* first = nullptr;
    for (int i = 0; i < m_list->count(); ++i) {
        QListWidgetItem* item = m_list->item(i);
        const QString key = item->data(nameRole).toString();
        if (key.isEmpty()) {
            head = item;
            head->setHidden(true);
            continue;
        }
        const auto info = findSchedule(key.toStdString());
        const bool shown = info && matches(**info, m_search->text());
        item->setHidden(!shown);
        if (!shown) continue;
        if (head != nullptr) head->setHidden(false);
        if (first == nullptr) first = item;
    }
    if (first != nullptr && (m_list->currentItem() == nullptr || m_list->currentItem()->isHidden()))
        m_list->setCurrentItem(first);
}

QStringList ScheduleBrowser::listed() const
{
    QStringList names;
    for (int i = 0; i < m_list->count(); ++i)
        if (!m_list->item(i)->isHidden() && !m_list->item(i)->data(nameRole).toString().isEmpty())
            names << m_list->item(i)->data(nameRole).toString();
    return names;
}

void ScheduleBrowser::choose(const QString& name)
{
    for (int i = 0; i < m_list->count(); ++i) {
        if (m_list->item(i)->data(nameRole).toString() != name) continue;
        m_list->setCurrentItem(m_list->item(i));
        m_list->scrollToItem(m_list->item(i), QAbstractItemView::PositionAtCenter);
    }
}

bool ScheduleBrowser::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_search && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Down || key->key() == Qt::Key_Up || key->key() == Qt::Key_PageDown ||
            key->key() == Qt::Key_PageUp) {
            QCoreApplication::sendEvent(m_list, event); // the arrow keys move in the list while typing
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace stagewright
